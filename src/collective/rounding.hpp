// The types in which numbers go from rank to rank, and loops that convert to them and from them. Internal to the
// library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "concord/core/bf16.hpp"
#include "concord/core/check.hpp"
#include "concord/core/fp16.hpp"
#include "concord/core/types.hpp"

namespace concord::collective {

// Loops of one thread.

/// rounded[i] = values[i], rounded.
void round_run(const float* values, Bf16* rounded, std::size_t n);
void round_run(const float* values, Fp16* rounded, std::size_t n);
inline void round_run(const float* values, float* rounded, std::size_t n) { std::copy_n(values, n, rounded); }
/// sums[i] += values[i].
void add_run(const Bf16* values, float* sums, std::size_t n);
void add_run(const Fp16* values, float* sums, std::size_t n);
void add_run(const float* values, float* sums, std::size_t n);

// Loops of all cores.

/// rounded[i] = values[i] · scale, rounded.
void round_scaled(std::span<const float> values, float scale, std::span<Bf16> rounded);
void round_scaled(std::span<const float> values, float scale, std::span<Fp16> rounded);
/// values[i] = rounded[i] · scale.
void widen_scaled(std::span<const Bf16> rounded, float scale, std::span<float> values);
void widen_scaled(std::span<const Fp16> rounded, float scale, std::span<float> values);

/// values[i] = the rounded values[i] · before, times `after`. Throws NotSupported unless `precision` is bf16 or fp16.
void round_in_place(std::span<float> values, Precision precision, float before, float after);

/// The largest finite magnitude; 0 if there is none.
[[nodiscard]] float largest_magnitude(std::span<const float> values);

/// The power of two with which `ranks` numbers of at most this magnitude, and their sum, fit into fp16.
[[nodiscard]] float scale_to_fp16(float largest, int ranks);

/// Calls `use` with a number of the type of a precision.
template <class Use>
void with_number_of(Precision precision, const Use& use) {
  if (precision == Precision::bf16) return use(Bf16{});
  if (precision == Precision::fp16) return use(Fp16{});
  throw NotSupported("ranks exchange rounded numbers in bf16 or fp16 only");
}

}  // namespace concord::collective
