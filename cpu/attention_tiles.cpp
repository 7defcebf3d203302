// Tile loops of attention. Accumulators of constant size, so that the compiler keeps them in registers.
#include "attention_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/formulas.h"

namespace concord::cpu {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// kRows rows and kColumns columns of c, which begin at row i and column j.
template <std::int64_t kRows, std::int64_t kColumns>
[[gnu::always_inline]] inline void multiply_block(const TileProduct& s, std::int64_t i, std::int64_t j) {
  const float* a = s.a + i * s.a_row;
  const float* b = s.b + j;
  float* c = s.c + i * s.c_row + j;
  float sums[kRows][kColumns];
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma omp simd
    for (std::int64_t x = 0; x < kColumns; ++x) sums[r][x] = s.add ? c[r * s.c_row + x] : 0.0F;
  }
  for (std::int64_t p = 0; p < s.k; ++p) {
    const float* right = b + p * s.b_row;
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float left = a[r * s.a_row + p * s.a_step];
#pragma omp simd
      for (std::int64_t x = 0; x < kColumns; ++x) sums[r][x] += left * right[x];
    }
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma omp simd
    for (std::int64_t x = 0; x < kColumns; ++x) c[r * s.c_row + x] = sums[r][x];
  }
}

template <std::int64_t kColumns>
[[gnu::always_inline]] inline void multiply_columns(const TileProduct& s, std::int64_t j) {
  std::int64_t i = 0;
  for (; i + 4 <= s.m; i += 4) multiply_block<4, kColumns>(s, i, j);
  for (; i < s.m; ++i) multiply_block<1, kColumns>(s, i, j);
}

constexpr std::int64_t kSquare = 4;

/// The transpose of kSquare rows and columns, in four vectors where the compiler has them.
inline void transpose_square(const float* src, std::int64_t src_row, float* dst, std::int64_t dst_row) {
  float square[kSquare][kSquare];
  for (std::int64_t r = 0; r < kSquare; ++r) {
    for (std::int64_t d = 0; d < kSquare; ++d) square[d][r] = src[r * src_row + d];
  }
  for (std::int64_t d = 0; d < kSquare; ++d) std::copy_n(square[d], kSquare, dst + d * dst_row);
}

}  // namespace

CONCORD_SIMD void tile_multiply(const TileProduct& s) {
  std::int64_t j = 0;
  for (; j + 2 * kAttentionLanes <= s.n; j += 2 * kAttentionLanes) multiply_columns<2 * kAttentionLanes>(s, j);
  for (; j < s.n; j += kAttentionLanes) multiply_columns<kAttentionLanes>(s, j);
}

void tile_transpose(const float* src, std::int64_t pitch, std::int64_t rows, std::int64_t width, float* dst,
                    std::int64_t columns) {
  const std::int64_t whole_rows = rows / kSquare * kSquare, whole_width = width / kSquare * kSquare;
  for (std::int64_t d = 0; d < whole_width; d += kSquare) {
    for (std::int64_t r = 0; r < whole_rows; r += kSquare) {
      transpose_square(src + r * pitch + d, pitch, dst + d * columns + r, columns);
    }
  }
  for (std::int64_t d = 0; d < width; ++d) {
    float* to = dst + d * columns;
    for (std::int64_t r = d < whole_width ? whole_rows : 0; r < rows; ++r) to[r] = src[r * pitch + d];
    std::fill(to + rows, to + columns, 0.0F);
  }
}

CONCORD_SIMD void tile_scores(float* row, const float* mask, float scale, std::int64_t count) {
  if (mask == nullptr) {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) row[j] *= scale;
  } else {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) row[j] = mask[j] == kHidden ? kHidden : scale * row[j] + mask[j];
  }
}

CONCORD_SIMD float tile_largest(const float* row, std::int64_t count) {
  float lanes[kAttentionLanes];
  std::fill_n(lanes, kAttentionLanes, kHidden);
  const std::int64_t whole = count / kAttentionLanes * kAttentionLanes;
  for (std::int64_t j = 0; j < whole; j += kAttentionLanes) {
#pragma omp simd
    for (std::int64_t x = 0; x < kAttentionLanes; ++x) lanes[x] = lanes[x] < row[j + x] ? row[j + x] : lanes[x];
  }
  for (std::int64_t j = whole; j < count; ++j) lanes[j - whole] = std::max(lanes[j - whole], row[j]);
  for (std::int64_t half = kAttentionLanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (std::int64_t x = 0; x < half; ++x) lanes[x] = lanes[x] < lanes[x + half] ? lanes[x + half] : lanes[x];
  }
  return lanes[0];
}

CONCORD_SIMD double tile_exponentials(float* row, float subtract, std::int64_t count, std::int64_t columns) {
  std::fill(row + count, row + columns, kHidden);
  float lanes[kAttentionLanes] = {};
  for (std::int64_t j = 0; j < columns; j += kAttentionLanes) {
#pragma omp simd
    for (std::int64_t x = 0; x < kAttentionLanes; ++x) {
      const float power = concord_exp(row[j + x] - subtract);
      row[j + x] = row[j + x] == kHidden ? 0.0F : power;
      lanes[x] += row[j + x];
    }
  }
  double sums[kAttentionLanes];
#pragma omp simd
  for (std::int64_t x = 0; x < kAttentionLanes; ++x) sums[x] = static_cast<double>(lanes[x]);
  for (std::int64_t half = kAttentionLanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (std::int64_t x = 0; x < half; ++x) sums[x] += sums[x + half];
  }
  return sums[0];
}

CONCORD_SIMD void tile_logsumexp(const float* largest, const double* sums, float* logsumexp, std::int64_t count) {
#pragma omp simd
  for (std::int64_t r = 0; r < count; ++r) logsumexp[r] = largest[r] + concord_log(static_cast<float>(sums[r]));
}

CONCORD_SIMD void tile_weights(float* row, float subtract, float factor, std::int64_t count, std::int64_t columns) {
  std::fill(row + count, row + columns, kHidden);
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    const float power = concord_exp(row[j] - subtract) * factor;
    row[j] = row[j] == kHidden ? 0.0F : power;
  }
}

CONCORD_SIMD void tile_slopes(float* weights, float* slopes, const float* factors, float delta, std::int64_t columns) {
  if (factors == nullptr) {
#pragma omp simd
    for (std::int64_t j = 0; j < columns; ++j) {
      const float slope = weights[j] * (slopes[j] - delta);
      slopes[j] = weights[j] == 0 ? 0.0F : slope;
    }
  } else {
#pragma omp simd
    for (std::int64_t j = 0; j < columns; ++j) {
      const float through = factors[j] == 0 ? 0.0F : factors[j] * slopes[j];
      const float slope = weights[j] * (through - delta);
      slopes[j] = weights[j] == 0 ? 0.0F : slope;
      weights[j] *= factors[j];
    }
  }
}

CONCORD_SIMD bool tile_is_finite(const float* row, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += row[j] - row[j];
  return sum == 0;
}

CONCORD_SIMD void tile_scale(float* row, float factor, std::int64_t columns) {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) row[j] *= factor;
}

}  // namespace concord::cpu
