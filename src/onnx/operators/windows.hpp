// Windows over the spatial axes, as convolutions and pools of ONNX describe them. Internal to the room.
#pragma once

#include "concord/onnx/call.hpp"
#include "concord/ops/spatial.hpp"

namespace concord::onnx {

struct Windows {
  Dims kernel, stride, dilation, before, after;  // one number for each spatial axis
  [[nodiscard]] std::size_t axes() const { return kernel.size(); }
  /// The pixels that a window covers along an axis.
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

/// Numbers of the last axes, as the operators take them; the axes before have `missing`.
[[nodiscard]] ops::Spatial spatial_numbers(const Dims& numbers, std::int64_t missing);

/// The windows of a node over the spatial axes of operand 0, with the paddings that `auto_pad` asks for. `kernel` is
/// for a node without the attribute kernel_shape. Throws NotSupported for more than three spatial axes.
[[nodiscard]] Windows windows_of(const Call& call, const Dims& kernel = {});

}  // namespace concord::onnx
