// Layers against recorded PyTorch layers: tests/goldens/layers.py.
#pragma once

#include <memory>
#include <string>

#include "concord/nn/module.hpp"

namespace concord::test {

/// Runs the layer as the recorded one of this name was run, on every device, and compares the output, all gradients,
/// the state after training and the output in evaluation. Differences are parts of the largest value expected.
void check_layer(const std::string& name, nn::Module& layer, double tolerance = 2e-5);

template <class Layer>
void check_layer(const std::string& name, Layer&& layer, double tolerance = 2e-5) {
  nn::Module& module = layer;
  check_layer(name, module, tolerance);
}

}  // namespace concord::test
