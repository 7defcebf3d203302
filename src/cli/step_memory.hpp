// The memory of a training step, planned without allocating it: for `concord models` and `concord summary`.
#pragma once

#include "concord/compile/memory_need.hpp"
#include "options.hpp"

namespace concord::cli {

/// --batch, --optimizer and --device.
struct StepMemoryOptions {
  TrainingOptions training{.model = {}, .batch = 32};
  std::string device = "cpu";

  void add(CLI::App& command);
  [[nodiscard]] DevicePtr open() const { return Device::open(device); }
};

/// Of one step of `network` on a batch of this spec: forward, loss of the model's task, backward, update. The arena
/// holds values, workspaces and inputs; the variables are weights, running statistics and the optimizer's state.
/// Throws OutOfMemory and NotSupported with the largest batch that is possible.
[[nodiscard]] MemoryNeed step_memory(const models::Model& model, nn::Module& network, const TensorSpec& batch,
                                     const DevicePtr& device, const TrainingOptions& training, MemoryDetail detail);

}  // namespace concord::cli
