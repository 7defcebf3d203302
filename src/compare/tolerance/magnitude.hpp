// How large the numbers of a tensor are and how far two tensors part. Weights of 100 million numbers are common, so the
// loops run on all cores with the widest vectors; the result does not depend on their number.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "concord/core/tensor.hpp"

namespace concord {

/// Of fp32: the largest relative error of rounding to nearest.
inline constexpr double kUnitRoundoff = 0x1p-24;

/// Over the finite values of an f32 tensor.
struct Magnitude {
  double largest = 0;  // of the absolute values
  double rms = 0;      // the root of the mean square over all elements
};
[[nodiscard]] Magnitude magnitude_of(const Tensor& tensor);

/// The largest of the rms over `axes` (sorted, distinct) of an f32 tensor: of the terms that a sum or a product adds
/// up.
[[nodiscard]] double largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes);

/// Magnitudes of tensors that do not change, each found once, whatever threads ask. Keeps their storage.
class Magnitudes {
 public:
  [[nodiscard]] const Magnitude& of(const Tensor& tensor);
  [[nodiscard]] double largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes);

 private:
  struct Known {
    Tensor tensor;
    std::once_flag found;
    Magnitude magnitude;
  };
  struct Along {
    Tensor tensor;
    std::vector<std::size_t> axes;
    std::once_flag found;
    double rms = 0;
  };
  Along& place_of(const Tensor& tensor, std::span<const std::size_t> axes);

  std::mutex mutex_;                         // of what is known, not of finding it
  std::map<const std::byte*, Known> known_;  // by storage: tensors that share it have the same numbers
  std::deque<Along> along_;
};

/// Largest absolute difference; infinite where only one of two elements is NaN, or they are different infinities, and
/// where tensors that are not f32 differ in any byte.
[[nodiscard]] double largest_difference(const Tensor& a, const Tensor& b);
/// Of an f32 tensor from as many numbers of double precision; numbers beyond f32 count as infinite. Infinite where an
/// i32 tensor is not equal to them.
[[nodiscard]] double largest_difference(const Tensor& a, std::span<const double> b);

/// How far the elements of a tensor are from those of its reference, each by itself.
struct Difference {
  double largest = 0;   // as largest_difference
  double relative = 0;  // the largest |a - b| of an element over |b|
  double ulps = 0;      // over the distance between neighbouring f32 numbers at |b|
  std::size_t at = 0;   // the first element of so many ULPs
};
/// An element of the reference that is smaller than `least` is taken for that large, and none for less than 2^-126.
/// `relative` and `ulps` are infinite where `largest` is.
[[nodiscard]] Difference difference_of(const Tensor& a, const Tensor& b, double least);
[[nodiscard]] Difference difference_of(const Tensor& a, std::span<const double> b, double least);

}  // namespace concord
