// minimize for a network whose parameters are spread over the stages of a pipeline. Internal to the library.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "concord/optim/minimize.hpp"

namespace concord::optim {

/// The stage that keeps a parameter, or that computes a node of the forward pass.
using StageOf = std::function<int(std::int32_t node)>;

/// The gradient of a parameter that several stages read. Each gathers its own part over the runs of an update, in a
/// variable. Then the home, which keeps the parameter, adds the parts of the others to its own, in the order of the
/// stages: the host copies each into `landing`, and makes the assignment `add`.
struct SharedGradient {
  int home = 0;
  std::map<int, Value> parts;  // of the other stages
  Value landing;               // a variable of the home
  Assignment add;
};

/// A step in four parts. The early assignments (Graph::assign_early) gather gradients and numbers of
/// MinimizeOptions::accumulate runs. Then the parts of shared gradients come together. Each stage measures its gathered
/// gradients, and the host gives kExchangedNumbers of the last stage and the measures of each stage to all. From these
/// every stage computes the same numbers of the step, and updates its parameters, in the other assignments.
struct StagedStep {
  Value ok;
  std::vector<SharedGradient> shared = {};
  /// For each stage, a variable f32 [n] and the norms of its gradients and whether all are finite; none if the step
  /// needs neither. A stage without trained parameters has an empty assignment.
  std::vector<Assignment> measures = {};
};

/// As minimize. Where no two stages read one parameter, an update has the bits of minimize with the same `accumulate`
/// above 1 on one device; else the order of the sums differs. Running statistics change in each run. The random state
/// does not advance: the host says it for each run.
[[nodiscard]] StagedStep minimize_in_stages(Value loss, const Optimizer& optimizer, const MinimizeOptions& options,
                                            int stages, const StageOf& stage_of);

}  // namespace concord::optim
