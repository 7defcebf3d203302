// How large the numbers of a tensor are and how far two tensors part. Weights of 100 million numbers are common, so the
// loops run on all cores; the result does not depend on their number.
#pragma once

#include <cstddef>
#include <span>

#include "concord/core/tensor.hpp"

namespace concord {

/// Over the finite values of an f32 tensor.
struct Extent {
  double largest = 0;  // of the absolute values
  double rms = 0;      // the root of the mean square over all elements
};
[[nodiscard]] Extent extent_of(const Tensor& tensor);

/// The largest of the rms over `axis` of an f32 tensor: of the rows or columns that a product sums over.
[[nodiscard]] double largest_rms_along(const Tensor& tensor, std::size_t axis);

/// Largest absolute difference; infinite where only one of two elements is NaN, or they are different infinities, and
/// where tensors that are not f32 differ in any byte.
[[nodiscard]] double largest_difference(const Tensor& a, const Tensor& b);
/// Of an f32 tensor from as many numbers of double precision; numbers beyond f32 count as infinite.
[[nodiscard]] double largest_difference(const Tensor& a, std::span<const double> b);

}  // namespace concord
