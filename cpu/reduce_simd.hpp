// The inner loops of reductions: along a row, and of many rows into one. Used by reduce.
#pragma once

#include <cstdint>

#include "bf16_simd.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::cpu {

/// Most lanes that `reduce_columns` takes.
inline constexpr std::int64_t kReduceLanes = 512;

/// What a reduction starts from: 0, 1, −∞ or ∞.
[[nodiscard]] double reduce_identity(ops::ReduceKind kind);
/// Sum (of squares, for norms), product, or the greater or lesser (NaN if either is).
[[nodiscard]] double reduce_combine(ops::ReduceKind kind, double a, double b);

/// What is stored of a reduction's result: the root of squares, at most the largest number of fp32 where they are
/// finite.
[[nodiscard]] float reduce_finished(ops::ReduceKind kind, double result);

/// src[i·stride] for i in [0, n), reduced. Sums run in 64 float lanes over at most 4096 elements, then in
/// double; squares and products in double from the first.
[[nodiscard]] double reduce_row(ops::ReduceKind kind, const float* src, std::int64_t n, std::int64_t stride);

/// result[j] = combine(result[j], src[r·stride + j] over r in [0, rows)) for j in [0, lanes). Sums of 64 rows run in
/// float, those of more in double.
void reduce_columns(ops::ReduceKind kind, const float* src, std::int64_t rows, std::int64_t stride, std::int64_t lanes,
                    double* result);

/// The same of sums, of numbers stored in bf16.
[[nodiscard]] double reduce_row(ops::ReduceKind kind, const Bf16* src, std::int64_t n, std::int64_t stride);
void reduce_columns(ops::ReduceKind kind, const Bf16* src, std::int64_t rows, std::int64_t stride, std::int64_t lanes,
                    double* result);

}  // namespace concord::cpu
