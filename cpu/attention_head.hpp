// What a thread works on in attention (attention.cpp): the problem, the thread's part of the workspace, and one head.
#pragma once

#include <algorithm>
#include <cstdint>

#include "concord/ops/attention.hpp"
#include "kernels.hpp"
#include "random_simd.hpp"

namespace concord::cpu {

inline constexpr std::int64_t kQueries = 32;  // of a tile
inline constexpr std::int64_t kKeys = 64;

/// What the loops need besides pointers.
struct Attention {
  ops::AttentionSizes s;
  ops::AttentionForm form;
  int threads;
  std::int64_t padded;  // the width in whole groups of lanes

  [[nodiscard]] std::int64_t rows() const { return s.batch * s.heads * s.queries; }
  [[nodiscard]] std::int64_t sharing() const { return s.heads / s.key_heads; }
  /// Floats of the scratch of one thread: see Scratch.
  [[nodiscard]] std::int64_t scratch() const { return 2 * s.width * kKeys + 4 * kKeys * padded + 3 * kQueries * kKeys; }
};

/// One thread's part of the workspace.
struct Scratch {
  float *keys, *values;              // transposed, (width, kKeys)
  float *rows, *other_rows;          // (kKeys, padded), when a row is not whole groups of lanes
  float *results, *more_results;     // (kKeys, padded)
  float *scores, *slopes, *factors;  // (kQueries, kKeys)

  Scratch(const Attention& a, float* at) {
    const auto take = [&](std::int64_t count) {
      float* const begin = at;
      at += count;
      return begin;
    };
    keys = take(a.s.width * kKeys);
    values = take(a.s.width * kKeys);
    for (float** place : {&rows, &other_rows, &results, &more_results}) *place = take(kKeys * a.padded);
    scores = take(kQueries * kKeys);
    slopes = take(kQueries * kKeys);
    factors = take(kQueries * kKeys);
  }
};

/// One head of one batch, as the operands give it.
struct Head {
  const Attention& a;
  const Pointers& pointers;
  std::int64_t batch, head;
  std::int64_t length;
  std::int64_t of_queries;                // its first row among those of logsumexp and statistics
  std::int64_t query_values, key_values;  // where the values of its first query stand, and of its first key

  Head(const Attention& attention, const Pointers& operands, std::int64_t b, std::int64_t h)
      : a(attention), pointers(operands), batch(b), head(h), length(a.s.keys) {
    if (a.form.lengths) length = pointers.input<std::int32_t>(a.s.lengths)[b];
    of_queries = (b * a.s.heads + h) * a.s.queries;
    query_values = a.s.queries_of(b, h);
    key_values = a.s.keys_of(b, h / a.sharing());
  }
  [[nodiscard]] bool valid() const { return length >= 0 && length <= a.s.keys; }
  /// How many keys query t sees: the first ones.
  [[nodiscard]] std::int64_t seen(std::int64_t t) const {
    if (a.form.causal == ops::Causal::none) return length;
    const std::int64_t offset = a.form.causal == ops::Causal::last ? length - a.s.queries : 0;
    return std::clamp<std::int64_t>(t + 1 + offset, 0, length);
  }
  [[nodiscard]] std::int64_t first_query(std::int64_t key) const {
    if (a.form.causal == ops::Causal::none) return 0;
    return std::max<std::int64_t>(0, a.form.causal == ops::Causal::last ? key + a.s.queries - length : key);
  }
  [[nodiscard]] const float* query_rows(std::size_t operand, std::int64_t t) const {
    return pointers.input<float>(operand) + query_values + t * a.s.query_pitch();
  }
  [[nodiscard]] const float* key_rows(std::size_t operand, std::int64_t s) const {
    return pointers.input<float>(operand) + key_values + s * a.s.key_pitch();
  }
  /// Of query t, from key s on; null without a mask.
  [[nodiscard]] const float* mask(std::int64_t t, std::int64_t s) const {
    if (!a.form.mask) return nullptr;
    const auto& strides = a.s.mask_strides;
    return pointers.input<float>(a.s.mask) + batch * strides[0] + head * strides[1] + t * strides[2] + s;
  }
  /// The factors (count, kKeys) of the weights of queries t … t + count and keys s … s + kKeys, t and s multiples of
  /// 16; null without dropout. Writes up to the next multiple of 16 rows.
  [[nodiscard]] const float* draw(std::int64_t t, std::int64_t count, std::int64_t s, float* factors) const {
    if (a.form.dropout == 0) return nullptr;
    const auto* state = pointers.input<std::uint32_t>(a.s.state);
    const attention_dropout dropout = dropout_of(state[0], state[1], state[2], a.form.purpose, a.form.keep());
    const std::uint32_t row = drawn_row(static_cast<std::uint32_t>(batch * a.s.heads + head),
                                        static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(a.s.queries));
    dropout_factors(dropout,
                    {row, static_cast<std::uint32_t>(s / DRAWN_SQUARE), (count + DRAWN_SQUARE - 1) / DRAWN_SQUARE,
                     kKeys / DRAWN_SQUARE},
                    a.form.kept(), factors);
    return factors;
  }
};

}  // namespace concord::cpu
