// The graphs of a training step, an evaluation step and a prediction.
#include "concord/train/trace.hpp"

#include <algorithm>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/dataset.hpp"
#include "concord/nn/channel_norm.hpp"
#include "concord/nn/class_axis.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/optim/exchange.hpp"
#include "concord/train/loss_sums.hpp"
#include "concord/train/metrics.hpp"
#include "concord/train/mixing.hpp"
#include "concord/train/model_parallel.hpp"
#include "concord/train/stage_plan.hpp"

namespace concord::train {
namespace {

Value counter(Graph& graph, const std::string& name, VariableRole role, std::int64_t numbers = 1) {
  return graph.variable(
      std::make_shared<Variable>(name, TensorSpec{DType::f32, Shape{numbers}}, Initializer{}, false, Tensor{}, role));
}

/// What a checkpoint keeps of the counting is the training's alone.
VariableRole role_of_counters(Purpose purpose) {
  return purpose == Purpose::train ? VariableRole::optimizer : VariableRole::transient;
}

void call_network(Traced& traced, const Recipe& recipe, const Values& features, bool divides_samples = true) {
  const std::vector<VariablePtr> before = traced.graph->variables();
  traced.outputs = outputs_in_parts(*recipe.network, features, recipe.model_parallel, recipe.rank, divides_samples);
  for (const VariablePtr& variable : traced.graph->variables()) {
    const bool known = std::ranges::find(before, variable) != before.end();
    const bool is_weight = variable->role == VariableRole::parameter || variable->role == VariableRole::own;
    if (!known && is_weight) traced.weights.push_back(variable);
  }
}

/// A formula over a few numbers, built input by input.
class Counting {
 public:
  Scalar input(Value value) {
    inputs_.push_back(value.shape().rank() == 1 ? value : reshape(value, Shape{1}));
    return scalar::input(static_cast<int>(inputs_.size()) - 1);
  }
  void add(Value variable, const Scalar& next, DType type = DType::f32) {
    variables_.push_back(variable);
    formulas_.push_back(next);
    types_.push_back(type);
  }
  void assign() {
    const auto counted = pointwise("count", inputs_, formulas_, types_);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i].graph().assign(variables_[i], counted[i]);
  }

 private:
  std::vector<Value> inputs_, variables_;
  std::vector<Scalar> formulas_;
  std::vector<DType> types_;
};

/// Adds the terms of a loss or metric up, where `good`, 1 or 0, says so.
void count_terms(Graph& graph, Counting& counting, const std::vector<LossTerm>& terms, const std::string& role,
                 std::int64_t batch, Value ok, const Scalar& good) {
  // What a checkpoint keeps of the counting is the training's alone, which has `ok`.
  const VariableRole kept = ok ? VariableRole::optimizer : VariableRole::transient;
  const auto add = [&](const std::string& name, const Scalar& part) {
    const Value variable = counter(graph, name, kept);
    const Scalar old = counting.input(variable);
    counting.add(variable, ok ? scalar::select(good, old + part, old) : old + part);
  };
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Scalar sum = counting.input(terms[t].sum);
    const bool is_mean = terms[t].kind == LossTerm::Kind::mean;
    add(loss_sum_name(role, t), is_mean ? sum * static_cast<float>(batch) : sum);
    if (terms[t].weight) add(loss_weight_name(role, t), counting.input(terms[t].weight));
  }
}

/// Adds the terms of a loss up, and moves the cursor on; both by `good`, 1 or 0. Each stage of a network has a cursor,
/// but only one the loss.
void count_batch(Graph& graph, const std::vector<LossTerm>& terms, const std::string& role, Value cursor,
                 std::int64_t batch, Value ok, bool in_stages = false) {
  Counting counting;
  const Scalar good = ok ? counting.input(ok) : Scalar(1.0F);
  count_terms(graph, counting, terms, role, batch, ok, good);
  if (in_stages) {
    graph.assign(cursor, pointwise("next_batch", {cursor}, scalar::input(0) + 1.0F, DType::i32));
  } else {
    counting.add(cursor, counting.input(cursor) + good, DType::i32);
  }
  counting.assign();
}

/// What a batch adds to the sums of the loss, and the names of these.
struct LossParts {
  LossParts(const std::vector<LossTerm>& terms, std::int64_t batch) {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const bool is_mean = terms[t].kind == LossTerm::Kind::mean;
      numbers.push_back(is_mean ? pointwise("count", {terms[t].sum}, scalar::input(0) * static_cast<float>(batch))
                                : terms[t].sum);
      names.push_back(loss_sum_name("train", t));
      if (!terms[t].weight) continue;
      numbers.push_back(terms[t].weight);
      names.push_back(loss_weight_name("train", t));
    }
  }
  std::vector<Value> numbers;
  std::vector<std::string> names;
};

/// As count_batch for a step in stages: the sums of the loss go on from run to run, and the cursor counts updates.
void count_update_of_stages(Graph& graph, const LossParts& parts, Value cursor, Value ok) {
  const Value sums = optim::gather_numbers(graph, kExchangedCounts, parts.numbers);
  Counting counting;
  const Scalar good = counting.input(ok);
  std::vector<Value> kept;
  for (std::size_t i = 0; i < parts.names.size(); ++i) {
    const Value variable = counter(graph, parts.names[i], VariableRole::optimizer);
    const Value sum = optim::exchanged_number(sums, static_cast<std::int64_t>(i));
    kept.push_back(pointwise("count", {reshape(ok, Shape{1}), reshape(sum, Shape{1}), variable},
                             scalar::select(scalar::input(0), scalar::input(1), scalar::input(2))));
    graph.assign(variable, kept.back());
  }
  graph.assign(sums, kept.size() == 1 ? kept[0] : concat(kept, 0));
  counting.add(cursor, counting.input(cursor) + good, DType::i32);
  counting.assign();
}

/// As count_batch for a step of several ranks: the sums of the loss are those of all ranks, the cursor is this rank's.
void count_batch_of_rank(Graph& graph, const std::vector<LossTerm>& terms, std::int64_t batch, Value cursor, Value ok,
                         int accumulate) {
  std::optional<PassScope> early(std::in_place, graph, Pass::update);  // they go out before the first gradients
  const LossParts parts(terms, batch);
  const std::vector<std::string>& names = parts.names;
  const Value sums = optim::exchange_numbers(graph, kExchangedCounts, parts.numbers, accumulate);
  early.reset();
  Counting counting;
  const Scalar good = counting.input(ok);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value variable = counter(graph, names[i], VariableRole::optimizer);
    const Scalar sum = counting.input(optim::exchanged_number(sums, static_cast<std::int64_t>(i)));
    counting.add(variable, scalar::select(good, sum, counting.input(variable)));
  }
  const Value updated = graph.variable(std::make_shared<Variable>(
      kUpdatedCursor, TensorSpec{DType::i32, Shape{1}}, Initializer{}, false, Tensor{}, VariableRole::transient));
  graph.assign_early(cursor, pointwise("next_batch", {cursor}, scalar::input(0) + 1.0F, DType::i32));
  const Scalar place = scalar::select(good, counting.input(cursor), counting.input(updated));
  counting.add(cursor, place, DType::i32);
  counting.add(updated, place, DType::i32);
  counting.assign();
}

/// The dimension of the outputs that are the classes, which the loss says. Empty in a training that need not know.
std::optional<std::size_t> class_axis_of(const Traced& traced, Value labels, int classes, Purpose purpose) {
  if (classes == 0) return {};
  const Shape outputs = traced.outputs[0].shape();
  const std::optional<std::size_t> axis = loss::class_axis(traced.outputs[0], labels.shape(), traced.loss);
  CONCORD_CHECK(axis || purpose == Purpose::train, ArgumentError,
                "more than one dimension of the outputs {} may be the classes of labels {}, so the accuracy is "
                "undefined. Use loss::cross_entropy, loss::nll or a softmax in the loss, or a data set with 0 classes, "
                "for a training without accuracies",
                outputs.str(), labels.shape().str());
  CONCORD_CHECK(!axis || classes <= outputs.dims()[*axis], ArgumentError,
                "the data set has labels up to {}, but the network has {} output{}", classes - 1, outputs.dims()[*axis],
                outputs.dims()[*axis] == 1 ? "" : "s");
  return axis;
}

/// The result of a metric as a loss has it.
std::vector<LossTerm> terms_of_metric(Value result, std::int64_t batch) {
  if (result.dtype() != DType::f32) result = cast(result, DType::f32);
  const Shape& shape = result.shape();
  if (shape.elements() == 1) return terms_of(result);
  CONCORD_CHECK(shape.rank() > 0 && shape[0] == batch, ShapeError,
                "its result for {} samples has shape {}; it must be one number, or a value for each sample", batch,
                shape.str());
  return {{LossTerm::Kind::mean, mean(result), {}}};
}

void count_metrics(Traced& traced, const NamedMetrics& metrics, const Values& targets, std::int64_t batch) {
  for (const auto& [name, metric] : metrics) {
    std::vector<LossTerm> terms;
    try {
      const Value result = metric(traced.outputs, targets);
      CONCORD_CHECK(result, ArgumentError, "its result is empty");
      terms = terms_of_metric(result, batch);
    } catch (const ShapeError& error) {
      throw ShapeError(fmt::format("metric '{}': {}", name, error.what()));
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("metric '{}': {}", name, error.what()));
    }
    Counting counting;
    count_terms(*traced.graph, counting, terms, role_of_metric(name), batch, {}, 1.0F);
    counting.assign();
    for (const LossTerm& term : terms) traced.metrics[name].push_back(term.kind);
  }
}

void count_hits_of(const Traced& traced, Value labels, std::size_t class_axis, int k) {
  Graph& graph = *traced.graph;
  const Value logits = with_classes_last(traced.outputs[0], class_axis);
  const Hits hits = count_hits(logits, labels, k, find_kept_labels(graph, labels));
  Counting counting;
  const auto add = [&](const char* name, Value counted) {
    if (!counted) return;
    const Value variable = counter(graph, name, VariableRole::transient, 2);
    const Scalar old = counting.input(variable);
    counting.add(variable, old + counting.input(counted));
  };
  add(kEvalFirst, hits.first);
  add(kEvalAmongK, hits.among_k);
  add(kEvalLabels, hits.labels);
  counting.assign();
}

}  // namespace

std::string role_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::train: return "train";
    case Purpose::statistics: return "eval.statistics";
    case Purpose::evaluate:
    case Purpose::predict: return "eval";
  }
  throw ArgumentError("unknown purpose of a program");
}

void check_classes(const Objective& objective, const Values& outputs, const Values& labels, const Source& source) {
  for (const auto& [output, target] : objective.pairs(outputs, labels)) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == target) data::check_outputs(output.shape(), target.shape(), source.labels[i].classes);
    }
  }
}

std::vector<std::optional<std::int32_t>> ignored_labels(Graph& graph, const Values& labels) {
  std::vector<std::optional<std::int32_t>> ignored;
  for (const NamedValue& column : labels) {
    const Value kept = find_kept_labels(graph, column.value);
    ignored.push_back(kept ? std::optional(ignored_label(kept)) : std::nullopt);
  }
  return ignored;
}

std::vector<Value> results_of(const Values& outputs, Value loss) {
  if (loss) return {loss};
  std::vector<Value> results;
  for (const NamedValue& output : outputs) results.push_back(output.value);
  return results;
}

namespace {

Value minimized_in_stages(Traced& traced, const Recipe& recipe, const optim::MinimizeOptions& how, int stages) {
  const ForwardOrder order(*traced.graph);
  const auto stage_of = [&](std::int32_t node) {
    return static_cast<int>(std::ranges::upper_bound(traced.begins, order.place(node)) - traced.begins.begin());
  };
  traced.staged = optim::minimize_in_stages(traced.loss, recipe.optimizer, how, stages, stage_of);
  return traced.staged.ok;
}

void cut_into_stages(Traced& traced, const StagePlan* plan) {
  if (plan != nullptr) traced.begins = plan->begins_in(ForwardOrder(*traced.graph), traced.results());
}

}  // namespace

Traced trace(const Recipe& recipe, const ProgramKey& key, const StagePlan* plan) {
  Traced traced;
  traced.graph = std::make_unique<Graph>();
  Graph& graph = *traced.graph;
  graph.set_training(key.purpose == Purpose::train || key.purpose == Purpose::statistics);
  const BatchValues batch = add_batch(graph, key.source, key.plan, role_of(key.purpose), role_of_counters(key.purpose));
  if (key.purpose == Purpose::statistics) {
    const Value number = pointwise("batch_number", {batch.cursor}, scalar::input(0) + 1.0F);
    const nn::AveragedStatistics averaged(number);
    call_network(traced, recipe, batch.features, false);
    graph.assign(batch.cursor, cast(number, DType::i32));
    cut_into_stages(traced, plan);
    return traced;
  }
  const std::optional<MixedBatch> mixed = key.mixes ? std::optional(mix(graph, batch)) : std::nullopt;
  std::optional<nn::SynchronisedStatistics> synchronised;
  if (key.purpose == Purpose::train && recipe.synchronises_statistics && recipe.minimize.ranks > 1) {
    synchronised.emplace(graph, recipe.rank, recipe.minimize.ranks);
  }
  call_network(traced, recipe, mixed ? mixed->features : batch.features);
  traced.cursor = batch.cursor;
  if (key.purpose == Purpose::predict) {
    cut_into_stages(traced, plan);
    return traced;
  }
  const Objective& objective = recipe.objective_for(key.purpose);
  check_classes(objective, traced.outputs, batch.labels, key.source);
  traced.loss = mixed ? mixed->loss(objective, traced.outputs) : objective(traced.outputs, batch.labels);
  CONCORD_CHECK(traced.loss, ArgumentError, "the loss of a trainer returned an empty value");
  CONCORD_CHECK(traced.loss.shape().elements() == 1, ShapeError,
                "the loss of a trainer must be one number, got {}; use Reduction::mean or sum",
                traced.loss.shape().str());
  const std::optional<std::size_t> class_axis =
      objective.is_single() ? class_axis_of(traced, batch.labels[0], key.source.labels[0].classes, key.purpose)
                            : std::nullopt;
  traced.ignored = ignored_labels(graph, batch.labels);
  const std::vector<LossTerm> terms = terms_of(traced.loss);
  for (const LossTerm& term : terms) traced.terms.push_back(term.kind);
  const std::string role = role_of(key.purpose);
  cut_into_stages(traced, plan);
  if (key.purpose == Purpose::train) {
    optim::MinimizeOptions how = recipe.minimize;
    how.weight = key.plan.weight();
    const Value ok = plan != nullptr ? minimized_in_stages(traced, recipe, how, plan->size())
                                     : optim::minimize(traced.loss, recipe.optimizer, how);
    if (plan != nullptr) {
      count_update_of_stages(graph, LossParts(terms, key.plan.size), batch.cursor, ok);
    } else if (how.ranks > 1) {
      count_batch_of_rank(graph, terms, key.plan.size, batch.cursor, ok, how.accumulate);
    } else {
      count_batch(graph, terms, role, batch.cursor, key.plan.size, ok);
    }
  } else {
    count_batch(graph, terms, role, batch.cursor, key.plan.size, {}, plan != nullptr);
    if (key.k > 0 && class_axis) count_hits_of(traced, batch.labels[0], *class_axis, key.k);
    count_metrics(traced, key.metrics, batch.labels, key.plan.size);
  }
  // What a batch of ignored labels divides by 0 is none of the program's business.
  const bool is_weighted = std::ranges::any_of(terms, [](const LossTerm& term) { return bool(term.weight); });
  if (is_weighted) {
    traced.loss = terms[0].value();
    for (std::size_t t = 1; t < terms.size(); ++t) traced.loss = traced.loss + terms[t].value();
  }
  return traced;
}

void check_metrics(const NamedMetrics& metrics) {
  for (const auto& [name, metric] : metrics) {
    CONCORD_CHECK(!name.empty() && is_utf8(name), ArgumentError,
                  "a metric is named '{}'; a name needs at least one character, in UTF-8", name);
    CONCORD_CHECK(metric, ArgumentError, "the metric '{}' has no function", name);
  }
}

}  // namespace concord::train
