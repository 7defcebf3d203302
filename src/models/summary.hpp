// The layers of a network with shapes, parameters and FLOPs, from its graph alone: it needs no device. `concord
// summary` and `concord models` use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace models {

/// A layer, or the operators of a block outside its layers, such as a residual addition.
struct LayerSummary {
  std::string path;             // "layer1.0.conv1"; empty for the network itself
  std::string kind;             // the operator with the most work: "conv2d"
  Shape output;                 // of its last operator
  std::int64_t parameters = 0;  // trainable; shared parameters count once
  double flops = 0;             // a multiply-add counts as two
};

struct Summary {
  std::vector<LayerSummary> layers;               // in the order in which they finish
  Shape output;                                   // the first, of several
  std::int64_t trainable = 0, non_trainable = 0;  // parameters; running statistics
  double flops = 0;
};

/// Summarizes the forward pass of `network` in training on a batch of this spec. Throws ShapeError with the layer that
/// does not match the batch.
[[nodiscard]] Summary summarize(nn::Module& network, const TensorSpec& batch);

/// An input of a network: an empty name is its position.
struct NamedSpec {
  std::string name;
  TensorSpec spec;
};
/// The same, for a network with several inputs.
[[nodiscard]] Summary summarize(nn::Module& network, const std::vector<NamedSpec>& inputs);

}  // namespace models
}  // namespace concord
