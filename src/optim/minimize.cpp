// minimize: one multi-output pointwise operator for the numbers of the step, one for each parameter.
#include "concord/optim/minimize.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/exchange.hpp"
#include "concord/optim/formulas.hpp"
#include "concord/optim/step_numbers.hpp"
#include "concord/optim/terms.hpp"

namespace concord::optim {
namespace {

void check_options(const MinimizeOptions& options) {
  CONCORD_CHECK(options.clip.norm >= 0 && options.clip.value >= 0, ArgumentError,
                "clipping needs positive limits, got norm {} and value {}", options.clip.norm, options.clip.value);
  CONCORD_CHECK(options.accumulate >= 1, ArgumentError, "gradients must be accumulated over at least 1 run, got {}",
                options.accumulate);
  CONCORD_CHECK(options.ranks >= 1, ArgumentError, "a step is that of at least 1 rank, got {}", options.ranks);
  const bool is_one = options.model_rank == 0 && options.model_ranks == 1;
  CONCORD_CHECK(is_one || (options.ranks == 1 && options.model_rank >= 0 && options.model_rank < options.model_ranks),
                ArgumentError, "a step cannot be that of part {} of {} and of {} ranks", options.model_rank,
                options.model_ranks, options.ranks);
  CONCORD_CHECK(options.weight > 0 && options.weight <= 0x1p31, ArgumentError,
                "the weight of a run must be above 0 and at most 2^31, got {}", options.weight);
  CONCORD_CHECK(options.loss_scale == 0 || (options.loss_scale >= 1 && options.loss_scale <= kMostScale), ArgumentError,
                "the scale of the loss must be from 1 to {}, or 0 for none, got {}", kMostScale, options.loss_scale);
  CONCORD_CHECK(options.ema_decay >= 0 && options.ema_decay < 1, ArgumentError,
                "the decay of averaged weights must be in [0, 1), got {}", options.ema_decay);
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
        step_{weight, gathered.gradient, part.lr, part.shared, {}} {}

  void add() {
    for (const Rule::State& state : rule_.states) {
      const TensorSpec spec{DType::f32, state.shape.value_or(step_.weight.shape())};
      step_.states.push_back(state_of(step_.weight, state.name, spec, state.initial));
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
    if (!gathered_.sums.empty()) {
      const Scalar good = inputs_.term(numbers_.taken), restart = inputs_.term(numbers_.restart);
      for (const auto& [variable, sum] : gathered_.sums) {
        targets_.push_back(variable);
        formulas_.push_back(
            scalar::select(restart, 0.0F, scalar::select(good, inputs_.term(sum), inputs_.term(variable))));
      }
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
    const Value average = state_variable(graph_, average_of(graph_, *step_.weight.node().variable));
    const Scalar old = inputs_.term(average);
    take(average, moved(old, weight, inputs_.term(numbers_.follow)), old);
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

/// A variable of the network that its layers assign: running statistics.
bool is_statistic(const Variable& variable) {
  const bool is_of_network = variable.role == VariableRole::parameter || variable.role == VariableRole::own;
  return is_of_network && !variable.trainable && variable.spec.dtype == DType::f32;
}

/// What a layer assigns happens only in good runs. Averages follow running statistics as they follow parameters, and
/// a count of batches is copied.
void assign_of_layer(const Assignment& assignment, const StepNumbers& numbers) {
  const Value variable = assignment.variable;
  Graph& graph = variable.graph();
  const VariablePtr& statistic = variable.node().variable;
  if (!numbers.follow || !is_statistic(*statistic)) {
    return graph.assign(variable, Update::kept_unless(numbers.ok, assignment.value, variable));
  }
  const Value average = state_variable(graph, average_of(graph, *statistic));
  TermInputs inputs;
  const Scalar next = inputs.term(assignment.value), old = inputs.term(average);
  const bool is_count = variable.name().ends_with("num_batches_tracked");
  const Scalar followed = is_count ? next : moved(old, next, inputs.term(numbers.follow));
  const std::vector<Scalar> formulas{scalar::select(inputs.term(numbers.ok), next, inputs.term(variable)),
                                     scalar::select(inputs.term(numbers.update), followed, old)};
  const std::vector<Value> results = inputs.compute("when_ok", formulas, variable.shape());
  graph.assign(variable, results[0]);
  graph.assign(average, results[1]);
}

std::vector<Value> own_of(const std::vector<Exchanged>& exchanged) {
  std::vector<Value> own;
  for (const Exchanged& one : exchanged) own.push_back(one.own);
  return own;
}

/// Whether the gradients are finite, but for these; empty where no other is left.
Value finite_but_for(const std::vector<bool>& left_out, const std::vector<Value>& weights,
                     const std::vector<Value>& gradients) {
  std::vector<Value> values;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (left_out[i]) continue;
    values.push_back(gradients[i]);
    names.push_back(weights[i].name());
  }
  return values.empty() ? Value{} : all_finite(std::move(values), std::move(names));
}

Rule rule_for(Value weight, const Rule& rule) {
  CONCORD_CHECK(weight.node().variable->shard.is_whole() || (!rule.stage && !rule.for_shape), NotSupported,
                "'{}': the optimizer '{}' computes with whole parameters, and this one is divided among devices; use "
                "another one for it, such as adamw or sgd",
                weight.name(), rule.name);
  if (!rule.for_shape) return rule;
  try {
    return rule.for_shape(weight.shape());
  } catch (const ArgumentError& error) {
    throw ArgumentError(fmt::format("'{}': {}", weight.name(), error.what()));
  }
}

}  // namespace

Variable average_of(const Graph& graph, const Variable& parameter) {
  return {.name = graph.free_name(ema_name(parameter.name), VariableRole::average, parameter.name),
          .spec = parameter.spec,
          .init = {},
          .role = VariableRole::average,
          .of = parameter.name,
          .shard = parameter.shard};
}

Value minimize(Value loss, const Optimizer& optimizer, const MinimizeOptions& options) {
  return with_host_memory("building a step of training", [&] { return minimized(loss, optimizer, options, nullptr); });
}

Value minimized(Value loss, const Optimizer& optimizer, const MinimizeOptions& options, Staging* staging) {
  CONCORD_CHECK(loss && loss.shape().elements() == 1, ShapeError,
                "a loss to minimize must be one number, got {}; use Reduction::mean or sum",
                loss ? loss.shape().str() : "");
  check_options(options);
  Graph& graph = loss.graph();
  const std::vector<Assignment> earlier(graph.assignments().begin(), graph.assignments().end());
  const Partition divided = partition(graph, optimizer, options.groups);
  std::vector<Value> weights;
  for (const Partition::Part& part : divided.parts) {
    weights.insert(weights.end(), part.weights.begin(), part.weights.end());
  }
  const LossScale scale = options.loss_scale > 0 ? add_loss_scale(graph, options) : LossScale{};
  const std::vector<LossTerm> terms = terms_of(loss);
  const auto scaled = [&](Value value, const LossTerm& term) {
    // What is differentiated is the sum over the ranks of a divided network, each of which has the whole loss.
    const float share = share_of_run(term, options) / static_cast<float>(options.model_ranks);
    if (share != 1) value = value * share;
    return scale.scale ? value * reshape(scale.scale, value.shape()) : value;
  };
  // Terms that are means over one weight are differentiated as such; a batch of weight 0 has no gradient.
  const bool is_weighted = std::ranges::any_of(terms, [](const LossTerm& term) { return bool(term.weight); });
  // But where ranks sum values within the step, a gradient is that of all their losses: a weight would come too late.
  const bool by_sums = options.ranks > 1 && most_all_reduced(graph) > 0;
  const auto differentiated = [&](const LossTerm& term) { return by_sums ? term.sum : term.value(); };
  const auto gradients_of = [&](Value value) {
    return staging != nullptr ? staging->gradients(value, weights) : gradient(value, weights);
  };
  Value finite_loss = loss;
  std::vector<std::vector<Value>> gradients;  // by term, then by parameter
  if (runs_of(options) == 1 || terms.size() == 1) {
    if (is_weighted) {
      finite_loss = terms[0].value();
      for (std::size_t t = 1; t < terms.size(); ++t) finite_loss = finite_loss + terms[t].value();
    }
    gradients.push_back(gradients_of(scaled(by_sums ? terms[0].sum : finite_loss, terms[0])));
  } else {
    finite_loss = {};
    for (const LossTerm& term : terms) {
      const Value value = term.value();
      finite_loss = finite_loss ? finite_loss + value : value;
      gradients.push_back(gradients_of(scaled(differentiated(term), term)));
    }
  }
  const Scope all(graph, "update");
  const PassScope pass(graph, Pass::update);
  if (options.model_ranks > 1) {
    for (std::vector<Value>& of_term : gradients) sum_whole_ones(of_term, weights);
  }
  const bool is_exchanged = options.ranks > 1;
  std::vector<Joined> joined = is_exchanged ? join_ranks(graph, terms, options, finite_loss, staging != nullptr)
                                            : join_runs(graph, terms, options);
  if (by_sums) {
    for (Joined& term : joined) term.weight = {};
  }
  const bool wants_norm = options.clip.norm > 0, wants_finite = options.check_gradients || scale.scale;
  std::vector<Gathered> gathered(weights.size());
  std::vector<Value> whole(weights.size());
  std::vector<Exchanged> exchanged;
  const auto gather = [&](std::size_t i) {
    std::vector<Value> sums;  // by term
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      const auto part_of = [&](Value value) { return weighed(value, joined[t], scale.unscale); };
      if (runs_of(options) == 1) {
        sums.push_back(gradients[t][i]);
      } else if (staging != nullptr) {
        sums.push_back(staging->gather(weights[i], i, t, gradients[t][i], part_of));
      } else if (is_exchanged) {
        exchanged.push_back(exchange_gradient(weights[i], part_of(gradients[t][i]), t, options.accumulate));
        sums.push_back(exchanged.back().variable);
      } else {
        gathered[i].sums.push_back(gather_gradient(weights[i], gradients[t][i], joined[t], t, scale.unscale));
        sums.push_back(gathered[i].sums.back().second);
      }
    }
    whole[i] = gathered[i].gradient = sums.size() == 1 ? sums[0] : joined_sum(sums, joined);
  };
  Gradients known;
  std::vector<bool> is_last(weights.size(), false);
  // A norm needs all sums, and so does each update that it scales.
  if (is_exchanged && staging == nullptr && !wants_norm) {
    std::vector<std::string> names;  // by parameter and term, as `exchanged`
    for (const std::size_t i : last_gradients(weights)) {
      is_last[i] = true;
      gather(i);
      names.resize(exchanged.size(), weights[i].name());
    }
    if (!exchanged.empty()) {
      known.bad = exchange_bad(graph, wants_finite ? own_of(exchanged) : std::vector<Value>{}, std::move(names),
                               counter_name(kExchangedBad, options.name));
    }
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!is_last[i]) gather(i);
  }
  if (options.model_ranks > 1) {
    known = measured_over_parts(weights, whole, options, finite_loss, wants_norm, wants_finite);
  } else if (staging != nullptr) {
    known = staging->measure(weights, whole, wants_norm, wants_finite);
  } else {
    if (wants_norm) known.norm = global_norm(whole);
    if (wants_finite) known.finite = finite_but_for(is_last, weights, whole);
  }
  if (terms.size() == 1) known.factor = joined[0].factor;
  const StepNumbers numbers =
      add_step_numbers(finite_loss, known, joined, scale, optimizer.rule().lr, divided, options);
  std::size_t i = 0;
  for (std::size_t p = 0; p < divided.parts.size(); ++p) {
    for (const Value& weight : divided.parts[p].weights) {
      const Rule rule = rule_for(weight, divided.parts[p].rule);
      const Scope one(graph, weight.name());
      Update(weight, gathered[i++], rule, numbers.parts[p], numbers, options).add();
    }
  }
  if (staging != nullptr) staging->restart();
  // What layers have assigned so far happens only in good runs.
  for (const Assignment& assignment :
       is_exchanged ? assign_before_exchange(graph, earlier, staging != nullptr ? runs_of(options) : options.accumulate)
                    : earlier) {
    assign_of_layer(assignment, numbers);
  }
  if (staging != nullptr) return numbers.ok;
  if (is_exchanged && options.accumulate > 1) {
    advance_random(graph, full(graph, Shape{}, 1), options.ranks, true);  // each run has numbers of its own
  } else {
    advance_random(graph, numbers.ok, options.ranks, false);
  }
  return numbers.ok;
}

}  // namespace concord::optim
