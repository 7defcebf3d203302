// Optimizer: an update rule as formulas over scalars, one pointwise operator a parameter on every device. To add one:
// a parameter struct with `rule()` in optimizers.hpp, its formula in optimizers.cpp, a row in the test.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <vector>

#include "concord/graph/expression.hpp"

namespace concord::optim {

/// What a formula is written in. `lr` and `shared` are the same for all elements.
struct UpdateTerms {
  Scalar weight, gradient, lr;
  std::vector<Scalar> shared;  // what Rule::shared gave
  std::vector<Scalar> states;  // in the order of Rule::states
};

struct Rule {
  struct State {
    std::string name;   // as in PyTorch's optimizer state: "exp_avg"
    float initial = 0;  // first value of all its elements
  };
  std::string name;  // "adam"
  double lr = 0;     // rate before any schedule
  std::vector<State> states;
  /// Numbers of this step, computed once for all parameters: of the rate and the step, which counts from 1. May be
  /// empty.
  std::function<std::vector<Scalar>(const Scalar& lr, const Scalar& step)> shared;
  /// The new weight, then the new states.
  std::function<std::vector<Scalar>(const UpdateTerms&)> update;
};

/// Any of the parameter structs of optimizers.hpp, or a user's own with `Rule rule() const`.
class Optimizer {
 public:
  template <class Parameters>
  requires requires(const Parameters& parameters) {
    { parameters.rule() } -> std::same_as<Rule>;
  }
  Optimizer(const Parameters& parameters) : rule_(parameters.rule()) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Rule& rule() const { return rule_; }

 private:
  Rule rule_;
};

}  // namespace concord::optim
