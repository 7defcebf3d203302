// compare: the same training on several devices, side by side. Says how far their losses part, how fast each is, and
// which operator, if any, computes something else than the reference device does on the same inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/data/dataset.hpp"
#include "concord/device/device.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/optimizer.hpp"

namespace concord {

struct CompareOptions {
  std::int64_t steps = 100;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  std::vector<optim::Group> groups = {};  // of optim::MinimizeOptions
  double seconds = 1;                     // a device's step is timed at least this long
  Precision precision = Precision::fp32;  // of products, on every device
};

/// One result of one operator that is outside its tolerance.
struct Deviation {
  std::string node, op, kernel, value, shapes;
  bool gradient = false;  // a value of the backward pass
  double error = 0;       // largest absolute difference from the reference device on the same inputs
  double tolerance = 0;   // what rounding explains
  std::int64_t step = 0;  // steps done before
};

/// What one device did.
struct DeviceRun {
  DeviceInfo device;
  std::vector<float> losses;                     // one a step
  double first_step_ms = 0;                      // compile, kernel builds and the first step
  double median_ms = 0, min_ms = 0, max_ms = 0;  // of a step
  double samples_per_second = 0;
  std::uint64_t memory_bytes = 0;     // of the device, taken by weights, optimizer state and the step: all at once
  double largest_loss_deviation = 0;  // relative to the reference device, over the run
  std::int64_t largest_at_step = 0;
  std::int64_t checked_values = 0;
  std::optional<Deviation> first_deviation;
};

struct Comparison {
  std::string network;
  CompareOptions options;
  std::vector<DeviceRun> runs;  // the first is the reference
  /// No operator left its tolerance on any device, every other device was checked, and every loss is finite.
  [[nodiscard]] bool agrees() const;
  /// The table that `concord compare` prints.
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string json() const;
};

/// Trains `network` on every device from the same weights on the same batches, `options.steps` steps each. Before the
/// first and after the last step every operator of the training step is run once more on each device with the inputs
/// that it had on devices[0], by itself and as fusion makes it, and its results are held against the tolerance of its
/// kind (see tolerance.hpp). The losses of correct devices part too, as rounding is amplified from step to step.
/// Throws ArgumentError for no device, no step, batch 0 or an empty data set.
[[nodiscard]] Comparison compare(nn::Module& network, const std::string& name, const Loss& loss,
                                 const optim::Optimizer& optimizer, const Dataset& dataset,
                                 std::span<const DevicePtr> devices, const CompareOptions& options = {});

}  // namespace concord
