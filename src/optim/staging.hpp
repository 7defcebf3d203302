// Staging: what minimize_in_stages wants of a step, and gets from it. Internal to the room.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "concord/optim/staged.hpp"
#include "concord/optim/step_numbers.hpp"

namespace concord::optim {

class Staging {
 public:
  Staging(int stages, const StageOf& stage_of) : stages_(stages), stage_of_(stage_of) {}

  /// The gradients of one term of the loss, as far as they are made where the parameters are kept. The parts of other
  /// stages wait for `gather`.
  [[nodiscard]] std::vector<Value> gradients(Value loss, const std::vector<Value>& weights);
  /// Has each stage gather its part of the gradient of parameter i over the runs of an update. `own` is the part of the
  /// home, and `weighed` returns what a run adds for a part. Returns the sum, which the home has in the end.
  [[nodiscard]] Value gather(Value weight, std::size_t i, std::size_t term, Value own,
                             const std::function<Value(Value part)>& weighed);
  /// The norm of all gradients and whether they are finite, from what each stage measures of its own.
  [[nodiscard]] Gradients measure(const std::vector<Value>& weights, const std::vector<Value>& gradients,
                                  bool wants_norm, bool wants_finite);
  /// Adds the assignments by which an update ends with 0 in all that is gathered. Called behind the updates, which read
  /// it, so that it needs no memory.
  void restart();
  [[nodiscard]] StagedStep step(Value ok) { return {ok, std::move(shared_), std::move(measures_)}; }

 private:
  int stages_;
  const StageOf& stage_of_;
  std::vector<std::vector<std::map<int, Value>>> elsewhere_;  // by term and parameter: the parts of other stages
  std::map<int, std::int32_t> readers_;                       // a node of each stage that reads a parameter
  std::vector<Value> gathered_;
  std::vector<SharedGradient> shared_;
  std::vector<Assignment> measures_;
};

}  // namespace concord::optim
