// Resize: interpolation by the rules of ONNX's operator of that name, which include those of PyTorch, TensorFlow and
// older frameworks. Made of Resample. `interpolate` (ops/resample.hpp) is the shorter form with PyTorch's rules.
#pragma once

#include "concord/ops/resample.hpp"

namespace CONCORD_PUBLIC concord {

/// Which coordinate x of the source belongs to position j of the result. `scale` is positions of the result per
/// position of the source; src and dst are the sizes, dst as src·scale.
enum class ResizeCoordinates : std::uint8_t {
  half_pixel,            // (j + 1/2)/scale − 1/2
  half_pixel_symmetric,  // the same, with the centre of the source at the centre of the result if src·scale is no whole
                         // number
  pytorch_half_pixel,    // as half_pixel; of one position, as if it lay at −1/2
  align_corners,         // j·(src − 1)/(dst − 1)
  asymmetric,            // j/scale
  tf_half_pixel_for_nn,  // (j + 1/2)/scale
  tf_crop_and_resize,    // from begin·(src − 1) to end·(src − 1)
};

/// How `nearest` rounds a coordinate.
enum class ResizeRounding : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct ResizeOptions {
  Interpolation mode = Interpolation::nearest;  // nearest_exact: nearest by half_pixel and round_prefer_ceil
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  ResizeRounding rounding = ResizeRounding::round_prefer_floor;  // nearest
  double cubic_a = -0.75;                                        // cubic: the coefficient a of Keys's kernel
  /// linear, cubic: positions outside the source get no weight, and the others sum to 1. Otherwise a position outside
  /// counts as the one at the border.
  bool exclude_outside = false;
  /// linear, cubic: where the result is smaller, the kernel is wider by 1/scale.
  bool antialias = false;
  /// tf_crop_and_resize: the value where the coordinate is outside the source.
  float extrapolation_value = 0;
};

struct ResizeAxis {
  std::size_t axis = 0;
  std::int64_t size = 1;      // of the result
  double scale = 0;           // 0: size / size of the source
  double begin = 0, end = 1;  // tf_crop_and_resize: the part of the source
};

/// x f32 with the sizes of `axes` changed, one axis after the other. An axis that keeps its size and has scale 1 is
/// left as it is, unless a part of it is taken. Throws ShapeError, ArgumentError.
Value resize(Value x, const std::vector<ResizeAxis>& axes, const ResizeOptions& options);

namespace ops {

/// The map of one axis of `src` positions by these rules; a position beyond the source has an empty row.
[[nodiscard]] AxisMap resize_map(const ResizeAxis& axis, std::int64_t src, const ResizeOptions& options);

}  // namespace ops
}  // namespace concord
