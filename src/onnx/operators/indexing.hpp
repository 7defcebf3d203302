// Indices of ONNX, which may count from the end. Internal to the room.
#pragma once

#include "concord/onnx/call.hpp"

namespace concord::onnx {

/// Throws NotSupported if formulas, which count in fp32, cannot tell `size` places from each other.
void require_countable(std::int64_t size);
/// Indices of an axis of this size as numbers from its start, i32.
[[nodiscard]] Value from_start(const Value& indices, std::int64_t size);
/// indices (…, K) of the first K = dims.size() axes → i32 (…): row-major places among these axes.
[[nodiscard]] Value row_major_places(const Value& indices, const Dims& dims);

}  // namespace concord::onnx
