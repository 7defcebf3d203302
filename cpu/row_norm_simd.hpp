// The loops of row normalisation over one row, vectorised, for values stored in fp32 and in bf16. Used by row_norm.
#pragma once

#include <cstdint>

#include "bf16_simd.hpp"

namespace concord::cpu {

/// dst = (src − mean)·rstd over `n` values; the mean stays 0 unless `centred`.
void row_norm_forward(const float* src, std::int64_t n, bool centred, float epsilon, float* dst, float* mean,
                      float* rstd);
void row_norm_forward(const Bf16* src, std::int64_t n, bool centred, float epsilon, Bf16* dst, float* mean,
                      float* rstd);
/// diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)); without the first mean unless `centred`.
void row_norm_backward(const float* diff_dst, const float* dst, std::int64_t n, bool centred, float rstd,
                       float* diff_src);
void row_norm_backward(const Bf16* diff_dst, const Bf16* dst, std::int64_t n, bool centred, float rstd, Bf16* diff_src);

}  // namespace concord::cpu
