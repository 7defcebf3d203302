// The graphs of a training step, an evaluation step and a prediction.
#include "concord/train/programs.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/data/dataset.hpp"
#include "concord/nn/channel_norm.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/train/metrics.hpp"

namespace concord::train {
namespace {

Value counter(Graph& graph, const char* name, std::int64_t numbers = 1) {
  return graph.variable(std::make_shared<Variable>(Variable{name, {DType::f32, Shape{numbers}}, {}, false, {}}));
}

void call_network(Traced& traced, const Recipe& recipe, Value features) {
  const std::vector<VariablePtr> before = traced.graph->variables();
  traced.output = (*recipe.network)(features);
  for (const VariablePtr& variable : traced.graph->variables()) {
    const bool known = std::ranges::find(before, variable) != before.end();
    if (!known && variable->name != "random.state") traced.weights.push_back(variable);
  }
}

/// After each good step the cursor moves on and the loss is added up.
void count_training(const Traced& traced, Value cursor, std::int64_t batch, Value ok) {
  Graph& graph = *traced.graph;
  const Value total = counter(graph, kLossSum);
  const Scalar good = scalar::input(0);
  const Scalar added = scalar::input(2) + scalar::input(1) * static_cast<float>(batch);
  const auto counted =
      pointwise("count", {ok, reshape(traced.loss, Shape{}), total, cursor},
                {scalar::select(good, added, scalar::input(2)), scalar::input(3) + good}, {DType::f32, DType::i32});
  graph.assign(total, counted[0]);
  graph.assign(cursor, counted[1]);
}

void count_evaluation(const Traced& traced, Value cursor, Value labels, std::int64_t batch, int k) {
  Graph& graph = *traced.graph;
  const Value total = counter(graph, kEvalLossSum);
  const auto counted =
      pointwise("count", {total, reshape(traced.loss, Shape{}), cursor},
                {scalar::input(0) + scalar::input(1) * static_cast<float>(batch), scalar::input(2) + 1.0F},
                {DType::f32, DType::i32});
  graph.assign(total, counted[0]);
  graph.assign(cursor, counted[1]);
  if (k == 0) return;
  const Hits hits = count_hits(traced.output, labels, k);
  const Value first = counter(graph, kEvalFirst, 2), among_k = counter(graph, kEvalAmongK, 2);
  const auto sums =
      pointwise("count", {first, hits.first, among_k, hits.among_k},
                {scalar::input(0) + scalar::input(1), scalar::input(2) + scalar::input(3)}, {DType::f32, DType::f32});
  graph.assign(first, sums[0]);
  graph.assign(among_k, sums[1]);
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

Traced trace(const Recipe& recipe, const ProgramKey& key, int classes) {
  Traced traced;
  traced.graph = std::make_unique<Graph>();
  Graph& graph = *traced.graph;
  graph.set_training(key.purpose == Purpose::train || key.purpose == Purpose::statistics);
  const BatchValues batch = add_batch(graph, key.source, key.plan, role_of(key.purpose));
  if (key.purpose == Purpose::statistics) {
    const Value number = pointwise("batch_number", {batch.cursor}, scalar::input(0) + 1.0F);
    const nn::AveragedStatistics averaged(number);
    call_network(traced, recipe, batch.features);
    graph.assign(batch.cursor, cast(number, DType::i32));
    return traced;
  }
  call_network(traced, recipe, batch.features);
  if (key.purpose == Purpose::predict) return traced;
  data::check_outputs(traced.output.shape(), batch.labels.shape(), classes);
  traced.loss = recipe.loss(traced.output, batch.labels);
  CONCORD_CHECK(traced.loss.shape().elements() == 1, ShapeError,
                "a trainer's loss is one number, got {}; use Reduction::mean or sum", traced.loss.shape().str());
  if (key.purpose == Purpose::train) {
    count_training(traced, batch.cursor, key.plan.size,
                   optim::minimize(traced.loss, recipe.optimizer, recipe.minimize));
  } else {
    count_evaluation(traced, batch.cursor, batch.labels, key.plan.size, key.k);
  }
  return traced;
}

StepProgramPtr ProgramCache::find(const ProgramKey& key) {
  programs_.remove_if([&](const auto& entry) { return entry.first.freezes != key.freezes; });  // never asked for again
  const auto found = std::ranges::find(programs_, key, &std::pair<ProgramKey, StepProgramPtr>::first);
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return found->second;
}

void ProgramCache::add(const ProgramKey& key, StepProgramPtr program) {
  programs_.emplace_front(key, std::move(program));
  if (programs_.size() > kMost) programs_.pop_back();
}

void ProgramCache::drop(const ProgramKey& key) {
  programs_.remove_if([&](const auto& entry) { return entry.first == key; });
}

void ProgramCache::drop(const std::string& source_id) {
  programs_.remove_if([&](const auto& entry) { return entry.first.source.id == source_id; });
}

}  // namespace concord::train
