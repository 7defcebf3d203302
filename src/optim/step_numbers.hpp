// StepNumbers: what is the same for all elements in one step — whether it counts, rates, corrections. Internal to the
// room.
#pragma once

#include <vector>

#include "concord/optim/minimize.hpp"

namespace concord::optim {

/// Of one part of the parameters.
struct PartNumbers {
  Value lr;
  std::vector<Value> shared;
};

/// Values of rank 0.
struct StepNumbers {
  Value ok;                        // 1 when this run and all before were good
  Value update;                    // 1 when parameters change in this run; `ok` unless gradients are accumulated
  Value taken;                     // 1 when this run's gradients count; `ok` unless the loss is scaled
  Value factor;                    // of the gradients; empty with neither clipping by norm nor a scaled loss
  Value follow;                    // how far averages move towards the weights; empty without them
  std::vector<PartNumbers> parts;  // as those of the partition
};

constexpr double kMostScale = 0x1p24;

/// The scale of the loss, of rank 0; empty without.
struct LossScale {
  Value scale, unscale;  // a variable, and its reciprocal
};
[[nodiscard]] LossScale add_loss_scale(Graph& graph, const MinimizeOptions& options);

/// Adds the numbers, and the counters that they depend on, to the graph. `norm` is that of all gradients, empty when it
/// is not needed; they are still scaled, unless they are accumulated.
[[nodiscard]] StepNumbers add_step_numbers(Value loss, Value norm, const LossScale& scale, double rate,
                                           const Partition& partition, const MinimizeOptions& options);

/// A new variable that is not trained, with this first value in all elements.
[[nodiscard]] Value state_variable(Graph& graph, const std::string& name, const TensorSpec& spec, float initial);

}  // namespace concord::optim
