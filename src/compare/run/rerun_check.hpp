// RerunCheck: if the losses of a device deviate more than rounding can explain, its training runs again, and the steps
// in question are checked on its own values. This finds faults that only these values trigger, and that the checks
// before and after the training miss.
#pragma once

#include <optional>
#include <span>

#include "concord/compare/compare.hpp"
#include "concord/compare/run/check_operators.hpp"
#include "concord/compare/run/training_step.hpp"

namespace concord {

/// The first loss that is not finite, or whose deviation from `expected` is above 1e-4, above the unit roundoff of
/// `precision`, and above 100 times that of every `perturbed` run up to that step.
[[nodiscard]] std::optional<SuspiciousLoss> suspicious_loss(std::span<const float> losses,
                                                            std::span<const float> expected,
                                                            std::span<const PerturbedRun> perturbed,
                                                            Precision precision);

/// Runs the replica at `place` again from its initial weights, on the same batches, up to that loss. If the loss is not
/// finite, it looks for the first step after which a loss or a weight is not finite, and in this step for the first
/// such value; on any replica but the first it checks this step too. If the loss is finite, it checks the step and the
/// one before, and if these are right, up to 64 steps before them. Deviations go to the device's DeviceRun.
[[nodiscard]] RerunCheck run_again(std::size_t place, const SuspiciousLoss& loss, const TrainingStep& step,
                                   std::span<Replica> sides, const Samples& dataset, OperatorChecks& checks,
                                   Comparison& comparison);

}  // namespace concord
