// RandomNetwork: a small network drawn from a seed, with its gradients and numbers for its inputs. What the tests of
// fusion hold devices to: convolutions, products, normalisations, pools and chains of pointwise steps of every kind,
// with operands of every broadcast form and integer inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord::test {

struct RandomNetwork {
  explicit RandomNetwork(std::uint32_t seed);
  Graph graph;
  /// The result, the loss and the gradients of the loss by every f32 input and variable.
  std::vector<Value> outputs;
  /// The numbers of the graph's inputs and variables, by name.
  std::map<std::string, Tensor> inputs, variables;
};

}  // namespace concord::test
