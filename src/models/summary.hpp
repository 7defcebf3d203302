// What a network is made of, layer by layer, from its graph alone: no device, no memory. Used by `concord summary` and
// `concord models`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace models {

/// A layer, or what a block does itself beside its layers, such as adding a residual.
struct LayerSummary {
  std::string path;             // "layer1.0.conv1"; empty for the network itself
  std::string kind;             // the operator that does most of the work: "conv2d"
  Shape output;                 // of its last operator
  std::int64_t parameters = 0;  // trainable, not counted again where layers share them
  double flops = 0;             // multiply and add count as two
};

struct Summary {
  std::vector<LayerSummary> layers;  // in the order in which they are finished
  Shape output;
  std::int64_t trainable = 0, non_trainable = 0;  // parameters; running statistics
  double flops = 0;
};

/// The forward pass in training of `network` on a batch of this spec. Throws ShapeError naming the layer that does not
/// fit.
[[nodiscard]] Summary summarize(nn::Module& network, const TensorSpec& batch);

}  // namespace models
}  // namespace concord
