// One function for each type of Caffe's layers, which adds it to a graph. Internal to the room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord/caffe/prototxt.hpp"
#include "concord/graph/graph.hpp"

namespace concord::caffe {

/// What a layer is made of at a trace.
struct LayerCall {
  const TextMessage& layer;
  std::vector<Value> bottoms;
  /// The value of a parameter of the layer: "weight", its shape.
  std::function<Value(const std::string& part, const Shape& shape, bool trainable)> parameter;
};

using LayerFunction = Value (*)(const LayerCall& call);

/// Null for a type that is not known.
[[nodiscard]] LayerFunction find_layer(std::string_view type);
/// Whether a layer has no part in inference: data, losses, accuracies.
[[nodiscard]] bool is_left_out(std::string_view type);

}  // namespace concord::caffe
