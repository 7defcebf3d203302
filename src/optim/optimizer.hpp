// Optimizer: an update rule as formulas over scalars, one pointwise operator a parameter on every device. To add one:
// a parameter struct with `rule()` in optimizers.hpp, its formula in the file of its family, a row in the test. Rules
// that look at more than one element at a time (norms, row means, matrix products) have a stage before the formula.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/expression.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// What the numbers of a step are computed of.
struct SharedTerms {
  Scalar lr, step;             // the rate; the number of the update, from 1
  std::vector<Scalar> states;  // in the order of Rule::shared_states
};

/// What a formula is written in. `lr` and `shared` are the same for all elements.
struct UpdateTerms {
  Scalar weight, gradient, lr;
  std::vector<Scalar> shared;  // what Rule::shared gave
  std::vector<Scalar> states;  // in the order of Rule::states
  std::vector<Scalar> staged;  // what Rule::stage gave
};

/// One parameter in one step as graph values, for a stage.
class ParameterStep {
 public:
  Value weight, gradient;  // of the same shape; the gradient after clipping
  Value lr;                // rank 0, as are the shared numbers
  std::vector<Value> shared;
  std::vector<Value> states;

  /// A formula over the elements of this parameter, as a value of its shape; `staged` are what it reads as such.
  [[nodiscard]] Value elementwise(const std::string& label, const std::vector<Value>& staged,
                                  const std::function<Scalar(const UpdateTerms&)>& formula) const;
};

struct Staged {
  std::vector<Value> values;  // each broadcasts to the parameter's shape
  /// New values of states that are not of the parameter's shape: their number in Rule::states, and the value.
  std::vector<std::pair<std::size_t, Value>> states = {};
};

struct Rule {
  struct State {
    std::string name;                 // as in PyTorch's optimizer state: "exp_avg"
    float initial = 0;                // first value of all its elements
    std::optional<Shape> shape = {};  // the parameter's when empty; with another one the stage updates it
  };
  std::string name;  // "adam"
  double lr = 0;     // rate before any schedule
  std::vector<State> states = {};
  /// Numbers that go on from step to step, one for all parameters.
  std::vector<State> shared_states = {};
  /// Numbers of this step, computed once for all parameters, then the new shared states. May be empty.
  std::function<std::vector<Scalar>(const SharedTerms&)> shared = {};
  /// Computed for each parameter before its update, of operators of any kind. May be empty.
  std::function<Staged(const ParameterStep&)> stage = {};
  /// The new weight, then the new states but those that the stage updates.
  std::function<std::vector<Scalar>(const UpdateTerms&)> update = {};
  /// For rules that depend on the parameter's shape: states, stage and update for this one in place of those above.
  /// Throws ArgumentError for a shape that the rule does not know. May be empty.
  std::function<Rule(const Shape& parameter)> for_shape = {};
};

/// Any of the parameter structs of optimizers.hpp, or a user's own with `Rule rule() const`.
class Optimizer {
 public:
  template <class Parameters>
  requires requires(const Parameters& parameters) {
    { parameters.rule() } -> std::same_as<Rule>;
  }
  Optimizer(const Parameters& parameters) : rule_(parameters.rule()) {  // NOLINT(google-explicit-constructor)
    if constexpr (requires(Parameters changed) { changed.weight_decay = 0.0; }) {
      decayed_ = [parameters](double weight_decay) {
        Parameters changed = parameters;
        changed.weight_decay = weight_decay;
        return Optimizer(changed);
      };
    }
  }
  [[nodiscard]] const Rule& rule() const { return rule_; }
  /// The same with another weight decay. Throws ArgumentError where the parameters have none.
  [[nodiscard]] Optimizer with_weight_decay(double weight_decay) const;

 private:
  Rule rule_;
  std::function<Optimizer(double)> decayed_;
};

}  // namespace optim
}  // namespace concord
