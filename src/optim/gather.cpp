// Weights of runs, and the variables that gather their gradients.
#include <fmt/format.h>

#include "concord/ops/pointwise.hpp"
#include "concord/optim/step_numbers.hpp"

namespace concord::optim {
namespace {

/// Adds the operands of `weighed` to `inputs`.
Scalar part_of_run(std::vector<Value>& inputs, Value gradient, const Joined& joined, Value unscale) {
  const auto input = [&](Value value) {
    inputs.push_back(value);
    return scalar::input(static_cast<int>(inputs.size()) - 1);
  };
  Scalar part = input(gradient);
  if (joined.weight) part = part * input(joined.weight);
  if (unscale) part = part * input(unscale);
  return part;
}

}  // namespace

Value state_of(Value weight, std::string_view state, const TensorSpec& spec, float initial) {
  const std::string parameter = weight.name();
  return state_variable(weight.graph(), {.name = fmt::format("optim.{}.{}", parameter, state),
                                         .spec = spec,
                                         .init = {Initializer::Kind::constant, initial, 0},
                                         .role = VariableRole::optimizer,
                                         .of = parameter,
                                         .shard = weight.node().variable->shard});
}

float share_of_run(const LossTerm& term, const MinimizeOptions& options) {
  if (term.kind == LossTerm::Kind::total) return 1;  // it is not divided in the end
  const double weight = term.kind == LossTerm::Kind::mean ? options.weight : 1;
  return runs_of(options) == 1 ? 1 : static_cast<float>(weight / runs_of(options));
}

Value weighed(Value gradient, const Joined& joined, Value unscale) {
  std::vector<Value> inputs;
  const Scalar part = part_of_run(inputs, gradient, joined, unscale);
  return inputs.size() == 1 ? gradient : pointwise("weigh", inputs, part);
}

std::pair<Value, Value> gather_gradient(Value weight, Value gradient, const Joined& joined, std::size_t term,
                                        Value unscale) {
  const std::string name = term == 0 ? "accumulated" : fmt::format("accumulated{}", term);
  const Value variable = state_of(weight, name, weight.spec(), 0);
  std::vector<Value> inputs{variable};
  const Scalar part = part_of_run(inputs, gradient, joined, unscale);
  return {variable, pointwise("accumulate", inputs, scalar::input(0) + part)};
}

}  // namespace concord::optim
