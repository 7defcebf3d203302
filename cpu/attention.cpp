// Attention and its gradients. Threads take blocks of queries (or of keys) and loop over tiles of keys (or of queries);
// only one tile of scores exists at a time.
#include "concord/ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_head.hpp"
#include "attention_tiles.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t whole_groups(std::int64_t n) { return (n + kAttentionLanes - 1) / kAttentionLanes * kAttentionLanes; }

/// c (m, n) = query rows (m, width) · columns (width, n), n in whole groups of lanes; rows of columns and of c are
/// kKeys apart.
void products(const Attention& a, const float* rows, std::int64_t m, const float* columns, std::int64_t n, float* c) {
  tile_multiply({rows, a.s.query_pitch(), 1, columns, kKeys, c, kKeys, m, whole_groups(n), a.s.width, false});
}

struct AttentionRows {
  const float* values;
  std::int64_t pitch;
};
/// (count, width) as rows of whole groups of lanes; copied to `scratch` where they are not.
AttentionRows padded_rows(const Attention& a, AttentionRows src, std::int64_t count, float* scratch) {
  if (a.padded == a.s.width) return src;
  for (std::int64_t r = 0; r < count; ++r) {
    std::copy_n(src.values + r * src.pitch, a.s.width, scratch + r * a.padded);
    std::fill(scratch + r * a.padded + a.s.width, scratch + (r + 1) * a.padded, 0.0F);
  }
  return {scratch, a.padded};
}

/// How a product treats values that are not finite: `plain` lets 0·NaN be NaN, `guarded` leaves out values with a
/// weight of 0. Blocks run plain, and again guarded if their results are not finite.
enum class Products : std::uint8_t { plain, guarded };

/// results (m, padded) += weights (m, k)·src (k, width); weight (i, p) at i·row + p·step.
struct Weights {
  const float* values;
  std::int64_t row, step;
};
void add_weighted(const Attention& a, Products products, Weights weights, std::int64_t m, AttentionRows src,
                  std::int64_t k, float* results, float* scratch) {
  if (products == Products::guarded) {
    const std::int64_t count = k * a.s.width;
    for (std::int64_t e = 0; e < count; ++e) {
      const float x = src.values[e / a.s.width * src.pitch + e % a.s.width];
      scratch[e / a.s.width * a.padded + e % a.s.width] = std::isfinite(x) ? x : 0.0F;
    }
    for (std::int64_t p = 0; p < k; ++p) {
      std::fill(scratch + p * a.padded + a.s.width, scratch + (p + 1) * a.padded, 0.0F);
    }
  }
  const AttentionRows rows =
      products == Products::guarded ? AttentionRows{scratch, a.padded} : padded_rows(a, src, k, scratch);
  tile_multiply(
      {weights.values, weights.row, weights.step, rows.values, rows.pitch, results, a.padded, m, a.padded, k, true});
  if (products == Products::plain) return;
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t d = 0; d < a.s.width; ++d) {
      const float x = src.values[p * src.pitch + d];
      if (std::isfinite(x)) continue;
      for (std::int64_t i = 0; i < m; ++i) {
        const float weight = weights.values[i * weights.row + p * weights.step];
        if (weight != 0) results[i * a.padded + d] += weight * x;
      }
    }
  }
}

/// AttentionRows of results, times `factor`, to `count` rows of dst.
void store(const Attention& a, const float* results, std::int64_t count, float factor, float* dst, std::int64_t pitch) {
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t d = 0; d < a.s.width; ++d) dst[r * pitch + d] = results[r * a.padded + d] * factor;
  }
}

/// dst, logsumexp and statistics of queries first … first + count; whether all sums are finite.
bool forward_block(const Head& head, std::int64_t first, std::int64_t count, const Scratch& scratch,
                   Products products_of_values) {
  const Attention& a = head.a;
  const std::int64_t pitch = a.s.query_pitch();
  float* dst = head.pointers.output<float>(0) + head.query_values + first * pitch;
  float* logsumexp = head.pointers.output<float>(1) + head.of_queries + first;
  float* row_largest = head.pointers.output<float>(2) + head.of_queries + first;
  float* row_inverse = row_largest + a.rows();
  if (!head.valid()) {
    for (std::int64_t r = 0; r < count; ++r) {
      std::fill_n(dst + r * pitch, a.s.width, std::numeric_limits<float>::quiet_NaN());
    }
    for (float* rows : {logsumexp, row_largest, row_inverse}) {
      std::fill_n(rows, count, std::numeric_limits<float>::quiet_NaN());
    }
    return true;
  }
  float largest[kQueries];
  double sum[kQueries] = {};
  std::fill_n(largest, count, -kInfinity);
  std::fill_n(scratch.results, count * a.padded, 0.0F);
  const std::int64_t end = head.seen(first + count - 1);
  for (std::int64_t tile = 0; tile < end; tile += kKeys) {
    const std::int64_t keys = std::min(kKeys, end - tile);
    tile_transpose(head.key_rows(1, tile), a.s.key_pitch(), keys, a.s.width, scratch.keys, kKeys);
    products(a, head.query_rows(0, first), count, scratch.keys, keys, scratch.scores);
    const float* factors = head.draw(first, count, tile, scratch.factors);
    for (std::int64_t r = 0; r < count; ++r) {
      float* row = scratch.scores + r * kKeys;
      const std::int64_t seen = std::clamp<std::int64_t>(head.seen(first + r) - tile, 0, keys);
      tile_scores(row, head.mask(first + r, tile), a.form.scale, seen);
      const float now = std::max(largest[r], tile_largest(row, seen));
      if (now != largest[r] && largest[r] != -kInfinity) {  // with -infinity, there are only zeros so far
        const float correction = std::exp(largest[r] - now);
        sum[r] *= static_cast<double>(correction);
        tile_scale(scratch.results + r * a.padded, correction, a.padded);
      }
      largest[r] = now;
      sum[r] += tile_exponentials(row, now, seen, whole_groups(keys));
      for (std::int64_t j = 0; j < seen && factors != nullptr; ++j) row[j] *= factors[r * kKeys + j];
    }
    add_weighted(a, products_of_values, {scratch.scores, kKeys, 1}, count, {head.key_rows(2, tile), a.s.key_pitch()},
                 keys, scratch.results, scratch.rows);
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const float factor = sum[r] == 0 ? 0.0F : static_cast<float>(1 / sum[r]);
    store(a, scratch.results + r * a.padded, 1, factor, dst + r * pitch, pitch);
    row_largest[r] = largest[r];
    row_inverse[r] = factor;
  }
  tile_logsumexp(largest, sum, logsumexp, count);
  return tile_is_finite(scratch.results, count * a.padded);
}

/// Of queries first … first + count and keys tile … tile + keys: the weights, those of dropout among them, in
/// scratch.scores, and d loss / d scores in scratch.slopes, from scratch.keys and scratch.values.
void weights_and_slopes(const Head& head, std::int64_t first, std::int64_t count, std::int64_t tile, std::int64_t keys,
                        const Scratch& scratch) {
  products(head.a, head.query_rows(0, first), count, scratch.keys, keys, scratch.scores);
  products(head.a, head.query_rows(3, first), count, scratch.values, keys, scratch.slopes);
  const float* factors = head.draw(first, count, tile, scratch.factors);
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t t = first + r;
    float* row = scratch.scores + r * kKeys;
    const std::int64_t seen = std::clamp<std::int64_t>(head.seen(t) - tile, 0, keys);
    tile_scores(row, head.mask(t, tile), head.a.form.scale, seen);
    const float* largest = head.pointers.input<float>(4) + head.of_queries + t;
    tile_weights(row, *largest, largest[head.a.rows()], seen, whole_groups(keys));
    tile_slopes(row, scratch.slopes + r * kKeys, factors == nullptr ? nullptr : factors + r * kKeys,
                head.pointers.input<float>(5)[head.a.s.delta_of(head.batch, head.head, t)], whole_groups(keys));
  }
}

/// diff_q of queries first … first + count; whether all sums are finite.
bool backward_query_block(const Head& head, std::int64_t first, std::int64_t count, const Scratch& scratch,
                          Products products_of_keys) {
  const Attention& a = head.a;
  std::fill_n(scratch.results, count * a.padded, 0.0F);
  const std::int64_t end = head.valid() ? head.seen(first + count - 1) : 0;
  for (std::int64_t tile = 0; tile < end; tile += kKeys) {
    const std::int64_t keys = std::min(kKeys, end - tile);
    tile_transpose(head.key_rows(1, tile), a.s.key_pitch(), keys, a.s.width, scratch.keys, kKeys);
    tile_transpose(head.key_rows(2, tile), a.s.key_pitch(), keys, a.s.width, scratch.values, kKeys);
    weights_and_slopes(head, first, count, tile, keys, scratch);
    add_weighted(a, products_of_keys, {scratch.slopes, kKeys, 1}, count, {head.key_rows(1, tile), a.s.key_pitch()},
                 keys, scratch.results, scratch.rows);
  }
  store(a, scratch.results, count, head.valid() ? a.form.scale : std::numeric_limits<float>::quiet_NaN(),
        head.pointers.output<float>(0) + head.query_values + first * a.s.query_pitch(), a.s.query_pitch());
  return tile_is_finite(scratch.results, count * a.padded);
}

/// diff_k and diff_v of keys first … first + count; the heads that share them in order. Whether all sums are finite.
bool backward_key_value_block(const Attention& a, const Pointers& pointers, std::int64_t batch, std::int64_t key_head,
                              std::int64_t first, std::int64_t count, const Scratch& scratch,
                              Products products_of_queries) {
  std::fill_n(scratch.results, count * a.padded, 0.0F);
  std::fill_n(scratch.more_results, count * a.padded, 0.0F);
  const Head owner(a, pointers, batch, key_head * a.sharing());
  const std::int64_t keys = owner.valid() ? std::clamp<std::int64_t>(owner.length - first, 0, count) : 0;
  tile_transpose(owner.key_rows(1, first), a.s.key_pitch(), keys, a.s.width, scratch.keys, kKeys);
  tile_transpose(owner.key_rows(2, first), a.s.key_pitch(), keys, a.s.width, scratch.values, kKeys);
  for (std::int64_t h = 0; h < a.sharing() && keys > 0; ++h) {
    const Head head(a, pointers, batch, key_head * a.sharing() + h);
    const std::int64_t begin = head.first_query(first) / kQueries * kQueries;  // whole tiles: dropout draws squares
    for (std::int64_t tile = begin; tile < a.s.queries; tile += kQueries) {
      const std::int64_t queries = std::min(kQueries, a.s.queries - tile);
      weights_and_slopes(head, tile, queries, first, keys, scratch);
      add_weighted(a, products_of_queries, {scratch.slopes, 1, kKeys}, keys,
                   {head.query_rows(0, tile), a.s.query_pitch()}, queries, scratch.results, scratch.other_rows);
      add_weighted(a, products_of_queries, {scratch.scores, 1, kKeys}, keys,
                   {head.query_rows(3, tile), a.s.query_pitch()}, queries, scratch.more_results, scratch.rows);
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t pitch = a.s.key_pitch(), place = owner.key_values + first * pitch;
  store(a, scratch.results, count, owner.valid() ? a.form.scale : nan, pointers.output<float>(0) + place, pitch);
  store(a, scratch.more_results, count, owner.valid() ? 1 : nan, pointers.output<float>(1) + place, pitch);
  return tile_is_finite(scratch.results, count * a.padded) && tile_is_finite(scratch.more_results, count * a.padded);
}

/// A kernel that runs block(pointers, batch, head, first, count, scratch, products) for all blocks of `size` of `rows`
/// rows: plain, and guarded where that leaves something that is not finite.
template <class Block>
PreparedKernel over_blocks(const KernelRequest& request, const Attention& a, std::string name, std::int64_t heads,
                           std::int64_t rows, std::int64_t size, const Block& block) {
  const std::int64_t blocks = (rows + size - 1) / size;
  const auto bytes = static_cast<std::size_t>(a.threads * a.scratch()) * sizeof(float);
  return all_plain(request, loop_kernel(std::move(name), bytes, [=](const Pointers& pointers) {
                     const std::int64_t work = a.s.batch * a.s.heads * a.s.queries * a.s.keys * a.s.width;
                     parallel_parts(a.s.batch * heads * blocks, a.threads, work >= kParallelElements,
                                    [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                                      const Scratch scratch(a, pointers.workspace<float>() + part * a.scratch());
                                      for (std::int64_t unit = begin; unit < end; ++unit) {
                                        const std::int64_t first = unit % blocks * size, head = unit / blocks;
                                        for (const Products products : {Products::plain, Products::guarded}) {
                                          if (block(pointers, head / heads, head % heads, first,
                                                    std::min(size, rows - first), scratch, products)) {
                                            break;
                                          }
                                        }
                                      }
                                    });
                   }));
}

template <class Op>
Attention attention_of(const Backend& backend, const Op& op, const KernelRequest& request, std::size_t operands) {
  const ops::AttentionSizes s = ops::attention_sizes(op.form(), request.inputs, operands);
  return {s, op.form(), backend.threads, whole_groups(s.width)};
}

PreparedKernel prepare_attention(Backend& backend, const ops::Attention& op, const KernelRequest& request) {
  const Attention a = attention_of(backend, op, request, 3);
  return over_blocks(request, a, "attention tiles", a.s.heads, a.s.queries, kQueries,
                     [a](const Pointers& pointers, std::int64_t batch, std::int64_t head, std::int64_t first,
                         std::int64_t count, const Scratch& scratch, Products products) {
                       return forward_block(Head(a, pointers, batch, head), first, count, scratch, products);
                     });
}

PreparedKernel prepare_attention_backward_query(Backend& backend, const ops::AttentionBackwardQuery& op,
                                                const KernelRequest& request) {
  const Attention a = attention_of(backend, op, request, 6);
  return over_blocks(request, a, "attention_backward_query tiles", a.s.heads, a.s.queries, kQueries,
                     [a](const Pointers& pointers, std::int64_t batch, std::int64_t head, std::int64_t first,
                         std::int64_t count, const Scratch& scratch, Products products) {
                       return backward_query_block(Head(a, pointers, batch, head), first, count, scratch, products);
                     });
}

PreparedKernel prepare_attention_backward_key_value(Backend& backend, const ops::AttentionBackwardKeyValue& op,
                                                    const KernelRequest& request) {
  const Attention a = attention_of(backend, op, request, 6);
  return over_blocks(request, a, "attention_backward_key_value tiles", a.s.key_heads, a.s.keys, kKeys,
                     [a](const Pointers& pointers, std::int64_t batch, std::int64_t head, std::int64_t first,
                         std::int64_t count, const Scratch& scratch, Products products) {
                       return backward_key_value_block(a, pointers, batch, head, first, count, scratch, products);
                     });
}

}  // namespace

void add_attention(Kernels& kernels) {
  kernels.add<ops::Attention, prepare_attention>();
  kernels.add<ops::AttentionBackwardQuery, prepare_attention_backward_query>();
  kernels.add<ops::AttentionBackwardKeyValue, prepare_attention_backward_key_value>();
}

}  // namespace concord::cpu
