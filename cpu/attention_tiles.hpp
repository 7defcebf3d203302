// The inner loops of attention over tiles that fit the second-level cache: small matrix products and the rows of a
// tile of scores. Used by attention; compiled for several vector widths.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// Columns come in whole groups of this many.
inline constexpr std::int64_t kAttentionLanes = 16;

/// c (m, n) = a (m, k) · b (k, n), added to c if `add`; a(i, p) at i·a_row + p·a_step, rows of b and c at their
/// strides. n is a multiple of kAttentionLanes. Sums run in the order of k.
struct TileProduct {
  const float* a;
  std::int64_t a_row, a_step;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t m, n, k;
  bool add;
};
void tile_multiply(const TileProduct& product);

/// dst (width, columns) = srcᵀ for src (rows, width), its rows `pitch` apart; zeros in the columns from `rows` on.
void tile_transpose(const float* src, std::int64_t pitch, std::int64_t rows, std::int64_t width, float* dst,
                    std::int64_t columns);

/// row[j] = scale·row[j] + mask[j] for j < count, −∞ where mask[j] is, whatever row[j] is; mask may be null.
void tile_scores(float* row, const float* mask, float scale, std::int64_t count);

/// The largest of row[j], j < count; −∞ of none.
float tile_largest(const float* row, std::int64_t count);

/// row[j] = exp(row[j] − subtract), 0 where row[j] is −∞, for j < count; 0 from there to `columns`, whole groups of
/// lanes. The sum, lane by lane.
double tile_exponentials(float* row, float subtract, std::int64_t count, std::int64_t columns);

/// logsumexp[r] = largest[r] + log(sums[r]).
void tile_logsumexp(const float* largest, const double* sums, float* logsumexp, std::int64_t count);

/// row[j] = factor·exp(row[j] − subtract), 0 where row[j] is −∞, for j < count; 0 from there to `columns`.
void tile_weights(float* row, float subtract, float factor, std::int64_t count, std::int64_t columns);

/// slopes[j] = weights[j]·(factors[j]·slopes[j] − delta), then weights[j] *= factors[j]; factors may be null. A slope
/// whose weight or factor is 0 is not read.
void tile_slopes(float* weights, float* slopes, const float* factors, float delta, std::int64_t columns);

/// Whether row[j] is finite for all j < count.
bool tile_is_finite(const float* row, std::int64_t count);

/// row[j] *= factor.
void tile_scale(float* row, float factor, std::int64_t columns);

}  // namespace concord::cpu
