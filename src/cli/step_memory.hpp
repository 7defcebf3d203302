// The memory of a training step, planned without allocating it: for `concord models` and `concord summary`.
#pragma once

#include "options.hpp"

namespace concord::cli {

/// --batch, --optimizer and --device.
struct StepMemoryOptions {
  TrainingOptions training{.model = {}, .batch = 32};
  std::string device = "cpu";

  void add(CLI::App& command);
  [[nodiscard]] DevicePtr open() const { return Device::open(device); }
};

struct StepMemory {
  std::size_t arena = 0;      // values, workspaces, inputs
  std::size_t variables = 0;  // weights, running statistics, the optimizer's state
  [[nodiscard]] std::size_t total() const { return arena + variables; }
};

/// Of one step of `network` on a batch of this spec: forward, loss of the model's task, backward, update.
[[nodiscard]] StepMemory step_memory(const models::Model& model, nn::Module& network, const TensorSpec& batch,
                                     Device& device, const TrainingOptions& training);

}  // namespace concord::cli
