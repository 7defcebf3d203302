// A small network, its data and its trainer: what the tests of the trainer share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

inline nn::Sequential small_net(std::int64_t classes = 3) {
  return nn::Sequential{nn::Linear{6, 16}, nn::ReLU{}, nn::Dropout{0.1F}, nn::Linear{16, classes}};
}

inline Trainer small_trainer(const DevicePtr& device, const TrainerOptions& options = {.seed = 4}) {
  return Trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
}

inline Dataset small_data(std::int64_t samples = 100, std::uint64_t seed = 0) {
  return data::synthetic(Shape{6}, 3, samples, seed);
}

/// A network with two-dimensional layers and running statistics.
inline nn::Sequential image_net() {
  return nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}},
                        nn::BatchNorm2d{4},
                        nn::ReLU{},
                        nn::GlobalAvgPool2d{},
                        nn::Flatten{},
                        nn::Linear{4, 3}};
}

inline std::map<std::string, std::vector<std::byte>> bytes_of(const Trainer& trainer) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const std::string& name : trainer.variables()->persistent_names()) {
    const Tensor tensor = trainer.variables()->read(name);
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

}  // namespace concord::test
