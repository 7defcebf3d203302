// Sums of taps in their order, vectorised over the row.
#include "resample_rows.hpp"

#include <algorithm>

namespace concord::cpu {

CONCORD_SIMD void resample_row(const float* src, std::int64_t n, const std::int32_t* place, const float* weight,
                               std::int64_t taps, float* dst) {
  std::fill_n(dst, n, 0.0F);
  for (std::int64_t t = 0; t < taps; ++t) {
    const float* from = src + place[t] * n;
    const float factor = weight[t];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] += factor * from[i];
  }
}

CONCORD_SIMD void resample_columns(const float* src, const std::int32_t* begin, const std::int32_t* place,
                                   const float* weight, std::int64_t n, float* dst) {
  for (std::int64_t j = 0; j < n; ++j) {
    float sum = 0;
    for (std::int32_t t = begin[j]; t < begin[j + 1]; ++t) sum += weight[t] * src[place[t]];
    dst[j] = sum;
  }
}

}  // namespace concord::cpu
