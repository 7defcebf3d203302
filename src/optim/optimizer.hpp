// Optimizer: an update rule written as formulas over scalars; each parameter is updated by one pointwise operator. A
// new optimizer needs a parameter struct with `rule()` and its name in the list, both in optimizers.hpp, its formula in
// a file of src/optim, and a recorded run in tests/goldens/optimizers.json. A rule that combines several elements
// (norms, row means, matrix multiplications) has a stage before the formula.
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

/// The inputs of Rule::shared.
struct SharedTerms {
  Scalar lr, step;             // the learning rate; the number of the update, from 1
  std::vector<Scalar> states;  // in the order of Rule::shared_states
};

/// The inputs of Rule::update. `lr` and `shared` are the same for all elements.
struct UpdateTerms {
  Scalar weight, gradient, lr;
  std::vector<Scalar> shared;  // results of Rule::shared
  std::vector<Scalar> states;  // in the order of Rule::states
  std::vector<Scalar> staged;  // results of Rule::stage
};

/// One parameter in one step as values of a graph: the input of Rule::stage.
class ParameterStep {
 public:
  Value weight, gradient;  // of equal shape; the gradient is clipped
  Value lr;                // rank 0, like the shared numbers
  std::vector<Value> shared;
  std::vector<Value> states;

  /// Applies a formula to the elements of this parameter. Returns a value of its shape. The formula reads `staged` as
  /// UpdateTerms::staged.
  [[nodiscard]] Value elementwise(const std::string& label, const std::vector<Value>& staged,
                                  const std::function<Scalar(const UpdateTerms&)>& formula) const;
};

struct Staged {
  std::vector<Value> values;  // each broadcasts to the shape of the parameter
  /// New values of states whose shape differs from that of the parameter: the index in Rule::states, and the value.
  std::vector<std::pair<std::size_t, Value>> states = {};
};

struct Rule {
  struct State {
    std::string name;                 // as in PyTorch's optimizer state: "exp_avg"
    float initial = 0;                // initial value of all elements
    std::optional<Shape> shape = {};  // empty: the shape of the parameter; otherwise the stage updates the state
  };
  std::string name;  // "adam"
  double lr = 0;     // learning rate without a schedule
  std::vector<State> states = {};
  /// Numbers that persist from step to step, shared by all parameters.
  std::vector<State> shared_states = {};
  /// Computes the shared numbers of a step once for all parameters, then the new shared states. May be empty.
  std::function<std::vector<Scalar>(const SharedTerms&)> shared = {};
  /// Computes values for each parameter before its update, with operators of any kind. May be empty.
  std::function<Staged(const ParameterStep&)> stage = {};
  /// Computes the new weight, then the new states except those that the stage updates.
  std::function<std::vector<Scalar>(const UpdateTerms&)> update = {};
  /// Returns states, stage and update for a shape, for rules that depend on the parameter's shape. Throws ArgumentError
  /// for a shape that the rule does not support. May be empty.
  std::function<Rule(const Shape& parameter)> for_shape = {};
};

/// Holds one of the parameter structs of optimizers.hpp, or a user's own with `Rule rule() const`.
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
  /// Returns the optimizer with another weight decay. Throws ArgumentError if its parameters have none.
  [[nodiscard]] Optimizer with_weight_decay(double weight_decay) const;

 private:
  Rule rule_;
  std::function<Optimizer(double)> decayed_;
};

}  // namespace optim
}  // namespace concord
