// The loops of row normalisation over one row, vectorised. Used by row_norm.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// dst = (src − mean)·rstd over `n` values; the mean stays 0 unless `centred`.
void row_norm_forward(const float* src, std::int64_t n, bool centred, float epsilon, float* dst, float* mean,
                      float* rstd);
/// diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)); without the first mean unless `centred`.
void row_norm_backward(const float* diff_dst, const float* dst, std::int64_t n, bool centred, float rstd,
                       float* diff_src);

}  // namespace concord::cpu
