// Cutting a network at inner values: the nodes that other outputs need are left out. Internal to the room.
#pragma once

#include <string>
#include <vector>

#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// Replaces the outputs of a graph by values of these names, and removes nodes, inputs and
/// initialisers that they do not need.
/// Throws ArgumentError, which begins with `file`, for a name that no node, input or initialiser has.
void cut_at(GraphDef& graph, const std::vector<std::string>& outputs, const std::string& file);

}  // namespace concord::onnx
