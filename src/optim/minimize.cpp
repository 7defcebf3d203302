// minimize: one multi-output pointwise operator for the numbers of the step, one for each parameter.
#include "concord/optim/minimize.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::optim {
namespace {

/// Values added by one operator: few enough for the argument limits of any device.
constexpr std::size_t kAddends = 8;

Value counter(Graph& graph, const char* name, DType type, double initial) {
  if (const Value found = graph.find(name)) return found;
  return graph.variable(std::make_shared<Variable>(
      Variable{name, {type, Shape{}}, {Initializer::Kind::constant, static_cast<float>(initial), 0}, false, {}}));
}

Value sum_of(std::vector<Value> scalars) {
  while (scalars.size() > 1) {
    std::vector<Value> sums;
    for (std::size_t i = 0; i < scalars.size(); i += kAddends) {
      const std::size_t n = std::min(kAddends, scalars.size() - i);
      Scalar total = scalar::input(0);
      for (std::size_t k = 1; k < n; ++k) total = total + scalar::input(static_cast<int>(k));
      const auto first = scalars.begin() + static_cast<std::ptrdiff_t>(i);
      sums.push_back(pointwise("sum", std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(n)), total));
    }
    scalars = std::move(sums);
  }
  return scalars.front();
}

/// What is the same for all parameters in one step.
struct Numbers {
  Value rate, ok, clip;  // clip is empty without clipping by norm
  std::vector<Value> shared;
};

Numbers add_numbers(Value loss, Value norm, const Rule& rule, const Clip& clip) {
  Graph& graph = loss.graph();
  Numbers numbers;
  numbers.rate = counter(graph, kRate, DType::f32, rule.lr);
  const Value step = counter(graph, kStep, DType::i32, 0);
  const Value ok = counter(graph, kOk, DType::f32, 1);
  std::vector<Value> inputs{numbers.rate, step, ok, reshape(loss, Shape{})};
  const Scalar next = scalar::input(1) + 1.0F;
  Scalar good = scalar::input(2) * scalar::is_finite(scalar::input(3));
  if (norm) {
    inputs.push_back(norm);
    good = good * scalar::is_finite(scalar::input(4));
  }
  std::vector<Scalar> formulas{good, scalar::select(good, next, scalar::input(1))};
  std::vector<DType> types{DType::f32, DType::i32};
  if (clip.norm > 0) {
    formulas.push_back(scalar::min(static_cast<float>(clip.norm) / (scalar::input(4) + 1e-6F), 1.0F));
    types.push_back(DType::f32);
  }
  if (rule.shared) {
    for (const Scalar& formula : rule.shared(scalar::input(0), next)) {
      formulas.push_back(formula);
      types.push_back(DType::f32);
    }
  }
  std::vector<Value> results = pointwise("optimizer_step", inputs, formulas, types);
  numbers.ok = results[0];
  graph.assign(ok, results[0]);
  graph.assign(step, results[1]);
  std::size_t used = 2;
  if (clip.norm > 0) numbers.clip = results[used++];
  numbers.shared.assign(results.begin() + static_cast<std::ptrdiff_t>(used), results.end());
  return numbers;
}

void add_update(Value weight, Value gradient, const Rule& rule, const Clip& clip, const Numbers& numbers) {
  Graph& graph = weight.graph();
  std::vector<Value> inputs;
  const auto term = [&](Value value) {
    inputs.push_back(value);
    return scalar::input(static_cast<int>(inputs.size()) - 1);
  };
  UpdateTerms terms{term(weight), term(gradient), term(numbers.rate), {}, {}};
  const Scalar ok = term(numbers.ok);
  if (numbers.clip) terms.gradient = terms.gradient * term(numbers.clip);
  if (clip.value > 0) {
    const auto limit = static_cast<float>(clip.value);
    terms.gradient = scalar::max(scalar::min(terms.gradient, limit), -limit);
  }
  for (const Value& value : numbers.shared) terms.shared.push_back(term(value));
  std::vector<Value> targets{weight};
  for (const Rule::State& state : rule.states) {
    targets.push_back(
        graph.variable(std::make_shared<Variable>(Variable{fmt::format("optim.{}.{}", weight.name(), state.name),
                                                           weight.spec(),
                                                           {Initializer::Kind::constant, state.initial, 0},
                                                           false,
                                                           {}})));
    terms.states.push_back(term(targets.back()));
  }
  std::vector<Scalar> formulas = rule.update(terms);
  formulas[0] = scalar::select(ok, formulas[0], terms.weight);
  for (std::size_t k = 0; k < rule.states.size(); ++k) {
    formulas[k + 1] = scalar::select(ok, formulas[k + 1], terms.states[k]);
  }
  const std::vector<Value> results =
      pointwise(rule.name, inputs, formulas, std::vector<DType>(formulas.size(), DType::f32));
  for (std::size_t k = 0; k < targets.size(); ++k) graph.assign(targets[k], results[k]);
}

/// What layers have assigned so far happens only in good steps.
void hold_back(Graph& graph, std::span<const Assignment> assignments, Value ok) {
  for (const Assignment& assignment : assignments) {
    const auto gated =
        pointwise("when_ok", {ok, assignment.value, assignment.variable},
                  scalar::select(scalar::input(0), scalar::input(1), scalar::input(2)), assignment.variable.dtype());
    graph.assign(assignment.variable, gated);
  }
}

/// The step word of the random state counts good steps; its words are small enough to be exact as numbers.
void advance_random(Graph& graph, Value ok) {
  const Value state = graph.find("random.state");
  if (!state) return;
  const Scalar moved = scalar::select(scalar::equal(scalar::coordinate(0), 2.0F), scalar::input(1), 0.0F);
  graph.assign(state, pointwise("advance_random", {state, ok}, scalar::input(0) + moved, DType::i32));
}

}  // namespace

Value global_norm(std::span<const Value> values) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "the norm of no values was asked for");
  std::vector<Value> squares;
  for (const Value& value : values) squares.push_back(sum(square(value)));
  return sqrt(sum_of(std::move(squares)));
}

Value minimize(Value loss, const Optimizer& optimizer, const MinimizeOptions& options) {
  CONCORD_CHECK(loss && loss.shape().elements() == 1, ShapeError,
                "a loss to minimize is one number, got {}; use Reduction::mean or sum", loss ? loss.shape().str() : "");
  CONCORD_CHECK(options.clip.norm >= 0 && options.clip.value >= 0, ArgumentError,
                "clipping needs positive limits, got norm {} and value {}", options.clip.norm, options.clip.value);
  Graph& graph = loss.graph();
  const std::vector<Assignment> earlier(graph.assignments().begin(), graph.assignments().end());
  std::vector<Value> weights;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) weights.push_back(graph.variable(variable));
  }
  CONCORD_CHECK(!weights.empty(), ArgumentError, "the graph of '{}' has no trainable variable", loss.name());
  const std::vector<Value> gradients = gradient(loss, weights);
  const bool need_norm = options.clip.norm > 0 || options.check_gradients;
  const Value norm = need_norm ? global_norm(gradients) : Value{};
  const Numbers numbers = add_numbers(loss, norm, optimizer.rule(), options.clip);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    add_update(weights[i], gradients[i], optimizer.rule(), options.clip, numbers);
  }
  hold_back(graph, earlier, numbers.ok);
  advance_random(graph, numbers.ok);
  return numbers.ok;
}

}  // namespace concord::optim
