// The magnitude of a tensor's values and the difference of two tensors. Weights of 100 million values are common, so
// the loops run on all cores with the widest vectors. The result does not depend on the number of cores.
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

/// Magnitudes of tensors that do not change. Each is computed once, whichever thread needs it first. Keeps the tensors'
/// storage.
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

/// The difference between a tensor and its reference, element by element.
struct Difference {
  double largest = 0;   // as largest_difference
  double relative = 0;  // the largest |a - b| of an element over |b|
  double ulps = 0;      // over the distance between neighbouring f32 numbers at |b|
  std::size_t at = 0;   // the first element with this many ULPs
};
/// A reference element smaller than `least`, or than 2^-126, counts as that large. `relative` and `ulps` are infinite
/// if `largest` is.
[[nodiscard]] Difference difference_of(const Tensor& a, const Tensor& b, double least);
[[nodiscard]] Difference difference_of(const Tensor& a, std::span<const double> b, double least);

}  // namespace concord
