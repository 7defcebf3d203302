// minimize for a network whose parameters are spread over the stages of a pipeline. Internal to the library.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord/optim/minimize.hpp"

namespace concord::optim {

/// The stage that keeps a parameter.
using StageOf = std::function<int(const Value& parameter)>;

/// A step in three parts. The early assignments (Graph::assign_early) gather gradients and numbers of
/// MinimizeOptions::accumulate runs. Then each stage measures its gathered gradients, and the host gives
/// kExchangedNumbers of the last stage and the measures of each stage to all. From these every stage computes the same
/// numbers of the step, and updates its parameters, in the other assignments.
struct StagedStep {
  Value ok;
  /// For each stage, a variable f32 [n] and the norms of its gradients and whether all are finite; none if the step
  /// needs neither. A stage without trained parameters has an empty assignment.
  std::vector<Assignment> measures;
};

/// As minimize; an update has the bits of minimize with the same `accumulate` above 1 on one device. Running statistics
/// change in each run. The random state does not advance: the host says it for each run.
[[nodiscard]] StagedStep minimize_in_stages(Value loss, const Optimizer& optimizer, const MinimizeOptions& options,
                                            int stages, const StageOf& stage_of);

}  // namespace concord::optim
