// minimize: one multi-output pointwise operator for the numbers of the step, one for each parameter.
#include "concord/optim/minimize.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/step_numbers.hpp"
#include "concord/optim/terms.hpp"

namespace concord::optim {
namespace {

constexpr const char* kUpdate = "update";

void check_options(const MinimizeOptions& options) {
  CONCORD_CHECK(options.clip.norm >= 0 && options.clip.value >= 0, ArgumentError,
                "clipping needs positive limits, got norm {} and value {}", options.clip.norm, options.clip.value);
  CONCORD_CHECK(options.accumulate >= 1, ArgumentError, "gradients are accumulated over 1 run or more, got {}",
                options.accumulate);
  CONCORD_CHECK(options.loss_scale == 0 || (options.loss_scale >= 1 && options.loss_scale <= kMostScale), ArgumentError,
                "the scale of the loss is from 1 to {}, got {}; 0 for none", kMostScale, options.loss_scale);
  CONCORD_CHECK(options.ema_decay >= 0 && options.ema_decay < 1, ArgumentError,
                "the decay of averaged weights is in [0, 1), got {}", options.ema_decay);
}

std::string state_name(Value weight, std::string_view state) {
  return fmt::format("optim.{}.{}", weight.name(), state);
}

/// A gradient with what earlier runs have gathered.
struct Gathered {
  Value sum;       // (gradients of this and earlier runs) / accumulate
  Value variable;  // holds the earlier ones; empty without accumulation
};

/// `unscale` is empty, or the reciprocal of the loss's scale, which may be another in the next run.
Gathered gather_gradient(Value weight, Value gradient, int accumulate, Value unscale) {
  if (accumulate == 1) return {gradient, {}};
  const Value variable = state_variable(weight.graph(), state_name(weight, "accumulated"), weight.spec(), 0);
  std::vector<Value> inputs{variable, gradient};
  Scalar part = scalar::input(1) * static_cast<float>(1.0 / accumulate);
  if (unscale) {
    inputs.push_back(unscale);
    part = part * scalar::input(2);
  }
  return {pointwise("accumulate", inputs, scalar::input(0) + part), variable};
}

/// One parameter's update under construction: formulas and the variables that take them.
class Update {
 public:
  Update(Value weight, const Gathered& gathered, const Rule& rule, const PartNumbers& part, const StepNumbers& numbers,
         const MinimizeOptions& options)
      : graph_(weight.graph()),
        rule_(rule),
        numbers_(numbers),
        options_(options),
        gathered_(gathered),
        step_{weight, gathered.sum, part.lr, part.shared, {}} {}

  void add() {
    for (const Rule::State& state : rule_.states) {
      const TensorSpec spec{DType::f32, state.shape.value_or(step_.weight.shape())};
      step_.states.push_back(state_variable(graph_, state_name(step_.weight, state.name), spec, state.initial));
    }
    Staged staged;
    if (rule_.stage) {
      step_.gradient = clipped_value();
      staged = rule_.stage(step_);
    }
    UpdateTerms terms = inputs_.terms(step_, staged.values);
    if (!rule_.stage) terms.gradient = clipped(inputs_, terms.gradient);
    apply_ = inputs_.term(numbers_.update);
    const std::vector<Scalar> formulas = rule_.update(terms);
    take(step_.weight, formulas[0], terms.weight);
    std::size_t used = 1;
    for (std::size_t k = 0; k < step_.states.size(); ++k) {
      const auto by_stage = std::ranges::find(staged.states, k, &std::pair<std::size_t, Value>::first);
      if (by_stage == staged.states.end()) {
        take(step_.states[k], formulas[used++], terms.states[k]);
      } else {
        graph_.assign(step_.states[k], kept_unless(numbers_.update, by_stage->second, step_.states[k]));
      }
    }
    if (numbers_.follow) follow(formulas[0]);
    if (gathered_.variable) {
      const Scalar good = inputs_.term(numbers_.taken), sum = inputs_.term(gathered_.sum);
      targets_.push_back(gathered_.variable);
      formulas_.push_back(scalar::select(apply_, 0.0F, scalar::select(good, sum, inputs_.term(gathered_.variable))));
    }
    const std::vector<Value> results = inputs_.compute(rule_.name, formulas_, step_.weight.shape());
    for (std::size_t k = 0; k < targets_.size(); ++k) graph_.assign(targets_[k], results[k]);
  }

  static Value kept_unless(Value condition, Value value, Value old) {
    return pointwise("when_ok", {condition, value, old},
                     scalar::select(scalar::input(0), scalar::input(1), scalar::input(2)), old.dtype());
  }

 private:
  [[nodiscard]] Scalar clipped(TermInputs& inputs, Scalar gradient) const {
    if (numbers_.factor) gradient = gradient * inputs.term(numbers_.factor);
    if (options_.clip.value > 0) {
      const auto limit = static_cast<float>(options_.clip.value);
      gradient = scalar::max(scalar::min(gradient, limit), -limit);
    }
    return gradient;
  }
  [[nodiscard]] Value clipped_value() const {
    if (!numbers_.factor && options_.clip.value == 0) return step_.gradient;
    TermInputs inputs;
    const Scalar gradient = clipped(inputs, inputs.term(step_.gradient));
    return inputs.compute("clip", {gradient}, step_.gradient.shape()).front();
  }
  void take(Value variable, const Scalar& formula, const Scalar& old) {
    targets_.push_back(variable);
    formulas_.push_back(scalar::select(apply_, formula, old));
  }
  void follow(const Scalar& weight) {
    const Value average = state_variable(graph_, ema_name(step_.weight.name()), step_.weight.spec(), 0);
    const Scalar old = inputs_.term(average);
    take(average, old + inputs_.term(numbers_.follow) * (weight - old), old);
  }

  Graph& graph_;
  const Rule& rule_;
  const StepNumbers& numbers_;
  const MinimizeOptions& options_;
  Gathered gathered_;
  ParameterStep step_;
  TermInputs inputs_;
  Scalar apply_ = 0.0F;
  std::vector<Value> targets_;
  std::vector<Scalar> formulas_;
};

Rule rule_for(Value weight, const Rule& rule) {
  if (!rule.for_shape) return rule;
  try {
    return rule.for_shape(weight.shape());
  } catch (const ArgumentError& error) {
    throw ArgumentError(fmt::format("'{}': {}", weight.name(), error.what()));
  }
}

/// The step word of the random state counts good runs, from 0 again after kMostSteps; its words are small enough to be
/// exact as numbers.
void advance_random(Graph& graph, Value ok) {
  const Value state = graph.find("random.state");
  if (!state) return;
  const Scalar is_step = scalar::equal(scalar::coordinate(0), 2.0F);
  const Scalar moved = scalar::input(0) + scalar::select(is_step, scalar::input(1), 0.0F);
  const Scalar is_last = is_step * scalar::equal(moved, static_cast<float>(kMostSteps));
  graph.assign(state, pointwise("advance_random", {state, ok}, scalar::select(is_last, 0.0F, moved), DType::i32));
}

}  // namespace

bool is_update(std::string_view node) { return node.starts_with(std::string(kUpdate) + "/"); }

Value minimize(Value loss, const Optimizer& optimizer, const MinimizeOptions& options) {
  CONCORD_CHECK(loss && loss.shape().elements() == 1, ShapeError,
                "a loss to minimize is one number, got {}; use Reduction::mean or sum", loss ? loss.shape().str() : "");
  check_options(options);
  Graph& graph = loss.graph();
  const std::vector<Assignment> earlier(graph.assignments().begin(), graph.assignments().end());
  const Partition divided = partition(graph, optimizer, options.groups);
  std::vector<Value> weights;
  for (const Partition::Part& part : divided.parts) {
    weights.insert(weights.end(), part.weights.begin(), part.weights.end());
  }
  const LossScale scale = options.loss_scale > 0 ? add_loss_scale(graph, options) : LossScale{};
  const Value scaled = scale.scale ? loss * reshape(scale.scale, loss.shape()) : loss;
  const std::vector<Value> gradients = gradient(scaled, weights);
  const Scope all(graph, kUpdate);
  std::vector<Gathered> gathered;
  std::vector<Value> sums;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    gathered.push_back(gather_gradient(weights[i], gradients[i], options.accumulate, scale.unscale));
    sums.push_back(gathered.back().sum);
  }
  const bool need_norm = options.clip.norm > 0 || options.check_gradients || scale.scale;
  const Value norm = need_norm ? global_norm(sums) : Value{};
  const StepNumbers numbers = add_step_numbers(loss, norm, scale, optimizer.rule().lr, divided, options);
  std::size_t i = 0;
  for (std::size_t p = 0; p < divided.parts.size(); ++p) {
    for (const Value& weight : divided.parts[p].weights) {
      const Rule rule = rule_for(weight, divided.parts[p].rule);
      const Scope one(graph, weight.name());
      Update(weight, gathered[i++], rule, numbers.parts[p], numbers, options).add();
    }
  }
  // What layers have assigned so far happens only in good runs.
  for (const Assignment& assignment : earlier) {
    graph.assign(assignment.variable, Update::kept_unless(numbers.ok, assignment.value, assignment.variable));
  }
  advance_random(graph, numbers.ok);
  return numbers.ok;
}

}  // namespace concord::optim
