// The memory of a training step, planned without allocating it: for `concord models` and `concord summary`.
#pragma once

#include <optional>

#include "concord/cli/options.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/compile/memory_need.hpp"

namespace concord::cli {

/// --batch, --optimizer and --device.
struct StepMemoryOptions {
  TrainingOptions training{.model = {}, .batch = 32};
  std::string device = "cpu";

  void add(CLI::App& command);
  [[nodiscard]] DevicePtr open() const { return Device::open(device); }
};

/// The memory of one step of `network` with its kernels, on a batch of these columns: forward, loss of the model's
/// objective, backward, update. The arena holds values, workspaces and inputs. The variables are weights, running
/// statistics and the optimizer's state. Throws OutOfMemory and NotSupported with the largest possible batch.
[[nodiscard]] MemoryNeed step_memory(const models::Model& model, nn::Module& network, const train::Source& source,
                                     std::int64_t batch, const DevicePtr& device, const TrainingOptions& training);

/// The same, for a list of networks. Returns nothing if the batch is not possible, so that the list continues.
[[nodiscard]] std::optional<MemoryNeed> step_memory_if_possible(const models::Model& model, nn::Module& network,
                                                                const train::Source& source, std::int64_t batch,
                                                                const DevicePtr& device,
                                                                const TrainingOptions& training);

}  // namespace concord::cli
