// RerunCheck: where the losses of a device part further than rounding explains, its training is run again, and the
// steps in question are checked on its own values: what only these values bring to light, at neither end of the
// training.
#pragma once

#include <optional>
#include <span>

#include "concord/compare/compare.hpp"
#include "concord/compare/run/check_operators.hpp"
#include "concord/compare/run/training_step.hpp"

namespace concord {

/// The first loss that is not finite, or whose deviation from `expected` is more than 100 times that of any of the
/// `perturbed` runs until then, and than 1e-4 and the unit roundoff of `precision`.
[[nodiscard]] std::optional<SuspiciousLoss> suspicious_loss(std::span<const float> losses,
                                                            std::span<const float> expected,
                                                            std::span<const PerturbedRun> perturbed,
                                                            Precision precision);

/// Runs the side at `place` again from its first weights on the same batches until that loss. Of a loss that is not
/// finite it looks for the first step that leaves a loss or a weight so, and in it for the first such value; behind the
/// first side that step is checked, too. Of a finite loss it checks the step and the one before, and, where these are
/// right, up to 64 before them. What diverges goes to the device's DeviceRun.
[[nodiscard]] RerunCheck run_again(std::size_t place, const SuspiciousLoss& loss, const TrainingStep& step,
                                   std::span<Replica> sides, const Dataset& dataset, OperatorChecks& checks,
                                   Comparison& comparison);

}  // namespace concord
