// Numbers of the host as values of a graph. Internal to the room.
#pragma once

#include "concord/graph/graph.hpp"
#include "concord/onnx/host_tensor.hpp"

namespace concord::onnx {

/// A value with these numbers, of dtype_of its type. Equal numbers need no memory; others are a variable that equal
/// numbers share, which no training changes and no checkpoint has. Throws NotSupported as tensor_of.
[[nodiscard]] Value constant_value(Graph& graph, const HostTensor& host);

}  // namespace concord::onnx
