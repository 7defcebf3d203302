// StepNumbers: all formulas read the same few counters; as many as a device takes go into one operator.
#include "concord/optim/step_numbers.hpp"

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"
#include "concord/optim/exchange.hpp"

namespace concord::optim {
namespace {

/// Results of one operator: few enough for the argument limits of any device.
constexpr std::size_t kResults = 16;

template <class T>
std::vector<T> part_of(const std::vector<T>& list, std::size_t begin, std::size_t end) {
  return {list.begin() + static_cast<std::ptrdiff_t>(begin), list.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Formulas waiting to be computed, each with the place of its value.
class Formulas {
 public:
  Scalar input(Value value) {
    inputs_.push_back(value);
    return scalar::input(static_cast<int>(inputs_.size()) - 1);
  }
  void add(const Scalar& formula, Value& result, DType type = DType::f32) {
    formulas_.push_back(formula);
    types_.push_back(type);
    results_.push_back(&result);
  }
  void compute() {
    for (std::size_t begin = 0; begin < formulas_.size(); begin += kResults) {
      const std::size_t end = std::min(begin + kResults, formulas_.size());
      const std::vector<Value> values =
          pointwise("optimizer_step", inputs_, part_of(formulas_, begin, end), part_of(types_, begin, end));
      for (std::size_t k = begin; k < end; ++k) *results_[k] = values[k - begin];
    }
  }

 private:
  std::vector<Value> inputs_;
  std::vector<Scalar> formulas_;
  std::vector<DType> types_;
  std::vector<Value*> results_;
};

/// A shared state and what it becomes.
struct Carried {
  Value variable, next;
};

Variable scalar_state(std::string name, DType type, float initial) {
  return {.name = std::move(name),
          .spec = {type, Shape{}},
          .init = {Initializer::Kind::constant, initial, 0},
          .role = VariableRole::optimizer};
}

/// A user's loop may have put it into the graph already. Its name is how the host finds it, so it has no other.
Value counter(Graph& graph, const std::string& name, DType type, float initial) {
  const TensorSpec spec{type, Shape{}};
  const Value found = graph.find(name);
  const VariablePtr held = found ? found.node().variable : nullptr;
  if (!held) return graph.variable(std::make_shared<Variable>(scalar_state(name, type, initial)));
  CONCORD_CHECK(held->role == VariableRole::own || held->role == VariableRole::optimizer, ArgumentError,
                "{} is named '{}', which the training uses; give its module another name", description_of(held->role),
                name);
  CONCORD_CHECK(held->spec == spec, ShapeError, "the variable '{}' is {}, but a training needs {}", name,
                held->spec.str(), spec.str());
  return found;
}

/// Written by the host before each run, so no part of a training's state.
Value flush_flag(Graph& graph, const std::string& name) {
  Variable flag = scalar_state(name, DType::f32, 0);
  flag.role = VariableRole::transient;
  return graph.find(name) ? graph.find(name) : graph.variable(std::make_shared<Variable>(std::move(flag)));
}

/// Whether a run may have no weight at all.
bool counts_nothing_at_times(const std::vector<Joined>& joined) {
  return std::ranges::all_of(joined, [](const Joined& term) { return term.kind == LossTerm::Kind::weighted; });
}

std::string shared_name(std::size_t part, const std::string& state, const std::string& name) {
  return counter_name((part == 0 ? "optim." + state : fmt::format("optim.part{}.{}", part, state)).c_str(), name);
}

}  // namespace

std::string counter_name(const char* counter, const std::string& name) {
  constexpr std::string_view kPrefix = "optim.";
  return name.empty() ? counter : fmt::format("{}{}.{}", kPrefix, name, counter + kPrefix.size());
}

Value state_variable(Graph& graph, Variable variable) {
  variable.name = graph.free_name(std::move(variable.name), variable.role, variable.of);
  return graph.variable(std::make_shared<Variable>(std::move(variable)));
}

double loss_scale_for(Precision precision) { return precision == Precision::fp16 ? 65536 : 0; }

LossScale add_loss_scale(Graph& graph, const MinimizeOptions& options) {
  const Value scale =
      counter(graph, counter_name(kScale, options.name), DType::f32, static_cast<float>(options.loss_scale));
  return {scale, pointwise("unscale", {scale}, 1.0F / scalar::input(0))};
}

std::vector<Joined> join_runs(Graph& graph, const std::vector<LossTerm>& terms, const MinimizeOptions& options) {
  std::vector<Joined> all;
  for (const LossTerm& term : terms) {
    Joined joined{.kind = term.kind, .weight = term.weight, .fixed = 1, .variable = {}, .sum = {}, .factor = {}};
    if (term.kind == LossTerm::Kind::mean) joined.fixed = static_cast<float>(options.weight);
    if (options.accumulate > 1 && term.kind != LossTerm::Kind::total) {
      std::string name = counter_name(kGatheredWeight, options.name);
      if (!all.empty()) name += std::to_string(all.size());
      joined.variable = counter(graph, name, DType::f32, 0);
      std::vector<Value> inputs{joined.variable};
      if (term.weight) inputs.push_back(term.weight);
      const Scalar sum = scalar::input(0) + (term.weight ? scalar::input(1) : Scalar(joined.fixed));
      const Scalar factor = static_cast<float>(options.accumulate) / sum;
      const std::vector<Value> results = pointwise(
          "join_runs", inputs, {sum, scalar::select(scalar::equal(sum, 0.0F), 0.0F, factor)}, {DType::f32, DType::f32});
      joined.sum = results[0];
      joined.factor = results[1];
    }
    all.push_back(joined);
  }
  return all;
}

std::vector<Joined> join_ranks(Graph& graph, const std::vector<LossTerm>& terms, const MinimizeOptions& options,
                               Value& finite_loss, bool is_staged) {
  // Zero times the loss is 0, or NaN if the loss is not finite; so is the sum over ranks.
  std::vector<Value> numbers{pointwise("finite_loss", {finite_loss}, scalar::input(0) * 0.0F)};
  std::vector<Joined> all;
  for (const LossTerm& term : terms) {
    Joined joined{.kind = term.kind, .weight = term.weight, .fixed = 1, .variable = {}, .sum = {}, .factor = {}};
    if (term.kind == LossTerm::Kind::mean) joined.fixed = static_cast<float>(options.weight);
    if (term.kind != LossTerm::Kind::total) {
      numbers.push_back(term.weight ? term.weight : full(graph, Shape{1}, joined.fixed));
    }
    all.push_back(joined);
  }
  const std::string name = counter_name(kExchangedNumbers, options.name);
  const Value sums =
      is_staged ? gather_numbers(graph, name, numbers) : exchange_numbers(graph, name, numbers, options.accumulate);
  if (is_staged) graph.assign(sums, full(graph, sums.shape(), 0));
  finite_loss = exchanged_number(sums, 0);
  std::int64_t place = 1;
  for (Joined& joined : all) {
    if (joined.kind == LossTerm::Kind::total) continue;
    joined.sum = exchanged_number(sums, place++);
    const Scalar sum = scalar::input(0), factor = static_cast<float>(runs_of(options)) / sum;
    joined.factor = pointwise("join_ranks", {joined.sum}, scalar::select(scalar::equal(sum, 0.0F), 0.0F, factor));
  }
  return all;
}

Value joined_sum(const std::vector<Value>& sums, const std::vector<Joined>& joined) {
  std::vector<Value> inputs;
  Scalar total = 0.0F;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    inputs.push_back(sums[t]);
    Scalar part = scalar::input(static_cast<int>(inputs.size()) - 1);
    if (joined[t].factor) {
      inputs.push_back(joined[t].factor);
      part = part * scalar::input(static_cast<int>(inputs.size()) - 1);
    }
    total = total + part;
  }
  return pointwise("join_terms", inputs, total);
}

StepNumbers add_step_numbers(Value loss, const Gradients& gradients, const std::vector<Joined>& joined,
                             const LossScale& scale, double rate, const Partition& partition,
                             const MinimizeOptions& options) {
  Graph& graph = loss.graph();
  const auto own_counter = [&](const char* name, DType type, float initial) {
    return counter(graph, counter_name(name, options.name), type, initial);
  };
  const Value common = own_counter(kRate, DType::f32, static_cast<float>(rate));
  const Value step = own_counter(kStep, DType::i32, 0);
  const Value ok = own_counter(kOk, DType::f32, 1);

  StepNumbers numbers;
  Formulas formulas;
  const Scalar lr = formulas.input(common), done = formulas.input(step), before = formulas.input(ok);
  Scalar good = before * scalar::is_finite(formulas.input(reshape(loss, Shape{})));
  Scalar factor = 1.0F, finite = 1.0F;
  const bool is_scaled = scale.scale && runs_of(options) == 1;
  if (gradients.finite) finite = formulas.input(gradients.finite);
  if (gradients.bad) finite = finite * scalar::equal(formulas.input(gradients.bad), 0.0F);
  if (is_scaled) factor = formulas.input(scale.unscale);
  if (gradients.factor) factor = factor * formulas.input(gradients.factor);
  if (options.clip.norm > 0) {
    const Scalar size = formulas.input(gradients.norm) * factor;
    factor = factor * scalar::min(static_cast<float>(options.clip.norm) / (size + 1e-6F), 1.0F);
    // A device may take numbers below this for 0, and gradients with so large a norm must not vanish.
    factor = scalar::max(factor, std::numeric_limits<float>::min());
  }
  if (is_scaled || gradients.factor || options.clip.norm > 0) formulas.add(factor, numbers.factor);
  Scalar taken = good * finite;
  Value next_scale, next_scale_steps;
  const Value scale_steps = scale.scale ? own_counter(kScaleSteps, DType::i32, 0) : Value{};
  if (scale.scale) {
    const Scalar now = formulas.input(scale.scale), count = formulas.input(scale_steps) + 1.0F;
    good = good * scalar::max(finite, scalar::less(1.0F, now));
    taken = good * finite;
    formulas.add(taken, numbers.taken);
    const Scalar due = taken * scalar::less_equal(static_cast<float>(kScaleInterval), count);
    const Scalar grown = scalar::min(now * 2.0F, static_cast<float>(kMostScale));
    const Scalar after = scalar::select(finite, scalar::select(due, grown, now), scalar::max(now * 0.5F, 1.0F));
    formulas.add(scalar::select(good, after, now), next_scale);
    formulas.add(scalar::select(good, scalar::select(due, 0.0F, finite * count), count - 1.0F), next_scale_steps,
                 DType::i32);
  } else {
    good = taken;
  }
  formulas.add(good, numbers.ok);
  Scalar update = taken;
  Value gathered, gathered_next;
  std::vector<Carried> divisors;
  divisors.reserve(joined.size());  // the formulas hold on to its elements
  if (gathers(options)) {
    gathered = own_counter(kGathered, DType::i32, 0);
    const Scalar count = formulas.input(gathered) + 1.0F;
    const Scalar due = scalar::max(scalar::less_equal(static_cast<float>(options.accumulate), count),
                                   formulas.input(flush_flag(graph, counter_name(kFlush, options.name))));
    update = taken * due;
    formulas.add(update, numbers.restart);
    formulas.add(scalar::select(taken, scalar::select(due, 0.0F, count), count - 1.0F), gathered_next, DType::i32);
    for (const Joined& term : joined) {
      if (!term.variable) continue;
      const Scalar old = formulas.input(term.variable), sum = formulas.input(term.sum);
      divisors.push_back({term.variable, {}});
      formulas.add(scalar::select(taken, scalar::select(due, 0.0F, sum), old), divisors.back().next);
    }
  }
  if (counts_nothing_at_times(joined)) {
    Scalar counts = 0.0F;
    for (const Joined& term : joined) {
      const Scalar weight = formulas.input(term.sum ? term.sum : term.weight);
      counts = scalar::max(counts, 1.0F - scalar::equal(weight, 0.0F));
    }
    update = update * counts;
  }
  Value next_step;
  if (gathers(options) || counts_nothing_at_times(joined)) formulas.add(update, numbers.update);
  formulas.add(scalar::select(update, done + 1.0F, done), next_step, DType::i32);
  if (options.ema_decay > 0) {
    const auto keep = static_cast<float>(1 - options.ema_decay);
    formulas.add(scalar::select(scalar::less_equal(done, 0.0F), 1.0F, keep), numbers.follow);
  }

  numbers.parts.resize(partition.parts.size());
  std::vector<std::vector<Carried>> carried(partition.parts.size());
  for (std::size_t p = 0; p < partition.parts.size(); ++p) {
    const auto& [rule, rate_factor, weights] = partition.parts[p];
    const Scalar own = rate_factor == 1 ? lr : lr * static_cast<float>(rate_factor);
    numbers.parts[p].lr = common;
    if (rate_factor != 1) formulas.add(own, numbers.parts[p].lr);
    if (!rule.shared) continue;
    SharedTerms terms{own, done + 1.0F, {}};
    for (const Rule::State& state : rule.shared_states) {
      const Value variable =
          state_variable(graph, scalar_state(shared_name(p, state.name, options.name), DType::f32, state.initial));
      carried[p].push_back({variable, {}});
      terms.states.push_back(formulas.input(variable));
    }
    const std::vector<Scalar> results = rule.shared(terms);
    const std::size_t plain = results.size() - carried[p].size();
    numbers.parts[p].shared.resize(plain);
    for (std::size_t k = 0; k < plain; ++k) formulas.add(results[k], numbers.parts[p].shared[k]);
    for (std::size_t k = 0; k < carried[p].size(); ++k) {
      formulas.add(scalar::select(update, results[plain + k], terms.states[k]), carried[p][k].next);
    }
  }
  formulas.compute();

  for (const Carried& divisor : divisors) graph.assign(divisor.variable, divisor.next);
  graph.assign(ok, numbers.ok);
  graph.assign(step, next_step);
  if (gathered) graph.assign(gathered, gathered_next);
  if (scale.scale) {
    graph.assign(scale.scale, next_scale);
    graph.assign(scale_steps, next_scale_steps);
  } else {
    numbers.taken = numbers.ok;
  }
  if (!numbers.update) numbers.update = numbers.taken;
  for (const auto& states : carried) {
    for (const Carried& state : states) graph.assign(state.variable, state.next);
  }
  return numbers;
}

void advance_random(Graph& graph, Value ok, int ranks, bool is_early) {
  const Value state = graph.used_random_state();
  if (!state) return;
  const Value next = advanced_random(state, {ok}, scalar::input(1) * static_cast<float>(ranks));
  if (is_early) {
    graph.assign_early(state, next);
  } else {
    graph.assign(state, next);
  }
}

}  // namespace concord::optim
