// Adaptive pooling in files that write it as products. Internal to the room.
#pragma once

#include "concord/onnx/call.hpp"

namespace concord::onnx {

/// a·b as Concord's adaptive mean pooling of images (N, C, H, W), where it is the second of two products with constant
/// matrices that take the means along H and along W, as the export writes a pooling with windows of different sizes. In
/// training the matrices are parameters, and stay. Returns an empty Value for anything else.
[[nodiscard]] Value adaptive_mean_of(const Call& call, const Value& a, const Value& b);

}  // namespace concord::onnx
