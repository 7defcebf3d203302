// Matrix products that several operators of ONNX use. Internal to the room.
#pragma once

#include "concord/onnx/table.hpp"

namespace concord::onnx {

/// a (…, M, K) × b (…, K, N), f32, where the other dimensions broadcast.
[[nodiscard]] Value broadcast_product(Value a, Value b);
void add_einsum(Table& table);

}  // namespace concord::onnx
