// NonFiniteSearch: runs the steps of a training again, operator by operator, to find the first value that is not
// finite. Internal to the room.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "concord/data/dataset.hpp"
#include "concord/optim/failure.hpp"
#include "concord/train/programs.hpp"

namespace concord::train {

/// Throws ArgumentError where a wrong index made the value of this report: it names the sample, of which `rows` are the
/// batch's places in the data set. `step` and `state` begin and end the message.
void require_right_index(const NonFiniteReport& report, std::span<const std::int32_t> rows, std::string_view step,
                         std::string_view state);

/// For one call of a Trainer.
class NonFiniteSearch {
 public:
  NonFiniteSearch(VariablesPtr variables, Precision precision)
      : variables_(std::move(variables)), precision_(precision) {}
  /// Searches the step with its present weights and without its update. If `batch` is null, the next batch is on the
  /// device. Throws the errors of compiling and running. A step that is searched again is not compiled again.
  [[nodiscard]] NonFiniteReport run(const StepProgramPtr& step, const Dataset* batch);
  /// After `run` of a step that the device does not apply: the first parameter whose gradient is not finite.
  [[nodiscard]] std::optional<optim::BadGradient> bad_gradient(const StepProgramPtr& step);
  /// Of the step of `bad_gradient`.
  [[nodiscard]] bool loss_is_finite() const { return loss_is_finite_; }

 private:
  /// The step with every value readable.
  [[nodiscard]] Program& checked(const StepProgramPtr& step, RunPart part);

  VariablesPtr variables_;
  Precision precision_;
  bool loss_is_finite_ = true;
  std::optional<Dataset> batch_;  // of `run`
  std::map<std::pair<StepProgramPtr, RunPart>, Program> checked_;
};

}  // namespace concord::train
