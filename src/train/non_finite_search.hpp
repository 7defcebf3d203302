// NonFiniteSearch: a training's steps run once more, operator by operator, to find where a value stops being finite.
#pragma once

#include <map>

#include "concord/data/dataset.hpp"
#include "concord/train/programs.hpp"

namespace concord::train {

/// For one call of Trainer::fit.
class NonFiniteSearch {
 public:
  NonFiniteSearch(VariablesPtr variables, Precision precision)
      : variables_(std::move(variables)), precision_(precision) {}
  /// The step with its present weights and without its update. `batch` is null where the batch that comes next lies on
  /// the device. Throws what compiling and running throw; a step that is searched again is not compiled again.
  [[nodiscard]] NonFiniteReport run(const StepProgramPtr& step, const Dataset* batch);

 private:
  VariablesPtr variables_;
  Precision precision_;
  std::map<StepProgramPtr, Program> checked_;  // the same steps with every value readable
};

}  // namespace concord::train
