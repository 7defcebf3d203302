// The memory of a training step, planned without allocating it: for `concord models` and `concord summary`.
#pragma once

#include <optional>

#include "concord/cli/options.hpp"
#include "concord/compile/memory_need.hpp"

namespace concord::cli {

/// --batch, --optimizer and --device.
struct StepMemoryOptions {
  TrainingOptions training{.model = {}, .batch = 32};
  std::string device = "cpu";

  void add(CLI::App& command);
  [[nodiscard]] DevicePtr open() const { return Device::open(device); }
};

/// Of one step of `network` on a batch of this spec, with its kernels: forward, loss of the model's task, backward,
/// update. The arena holds values, workspaces and inputs; the variables are weights, running statistics and the
/// optimizer's state. Throws OutOfMemory and NotSupported with the largest batch that is possible.
[[nodiscard]] MemoryNeed step_memory(const models::Model& model, nn::Module& network, const TensorSpec& batch,
                                     const DevicePtr& device, const TrainingOptions& training);

/// That of the values, for a list that goes on behind a network whose batch is not possible, for which it gives
/// nothing.
[[nodiscard]] std::optional<MemoryNeed> step_memory_if_possible(const models::Model& model, nn::Module& network,
                                                                const TensorSpec& batch, const DevicePtr& device,
                                                                const TrainingOptions& training);

}  // namespace concord::cli
