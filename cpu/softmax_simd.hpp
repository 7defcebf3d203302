// Softmax, its logarithm and their gradients over one block of an axis, vectorised. Used by softmax
// and cross-entropy.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// Most neighbouring columns that a block has.
inline constexpr std::int64_t kSoftmaxLanes = 64;

/// A block of `lanes` neighbouring columns, normalised along `length` elements that lie `stride` apart. One column has
/// a stride of its own; more have lanes <= stride. A NaN or an infinity makes its column NaN, as in PyTorch.
struct SoftmaxBlock {
  std::int64_t length, stride, lanes;
};

/// What softmax divides by.
struct SoftmaxTotal {
  float largest;  // max src
  double total;   // Σ exp(src − max)
};

/// Of n neighbours. A NaN makes both NaN; an infinity, the total.
[[nodiscard]] SoftmaxTotal softmax_total(const float* src, std::int64_t n);

/// dst = exp(src − max) / Σ exp(src − max), or its logarithm. dst may be src.
void softmax_forward_block(const SoftmaxBlock& block, bool log, const float* src, float* dst);

/// diff_src = dst·(diff_dst − Σ diff_dst·dst); of the logarithm diff_dst − exp(dst)·Σ diff_dst, and 0 where both are 0,
/// whatever dst is. diff_src may be diff_dst or dst.
void softmax_backward_block(const SoftmaxBlock& block, bool log, const float* diff_dst, const float* dst,
                            float* diff_src);

}  // namespace concord::cpu
