// Steps in stages: what each stage gathers and measures, and what it knows of the others.
#include <fmt/format.h>

#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient_parts.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/exchange.hpp"
#include "concord/optim/step_numbers.hpp"

namespace concord::optim {

StagedStep minimize_in_stages(Value loss, const Optimizer& optimizer, const MinimizeOptions& options, int stages,
                              const StageOf& stage_of) {
  CONCORD_CHECK(options.ranks == 1 && options.accumulate > 1, ArgumentError,
                "a step in stages joins at least 2 runs of one rank, got {} of {}", options.accumulate, options.ranks);
  MinimizeOptions joined = options;  // gathered between the parts of the step, as what several ranks add
  joined.ranks = options.accumulate;
  joined.accumulate = 1;
  Staging staging(stages, stage_of);
  const Value ok =
      with_host_memory("building a step of training", [&] { return minimized(loss, optimizer, joined, &staging); });
  return staging.step(ok);
}

std::vector<Value> Staging::gradients(Value loss, const std::vector<Value>& weights) {
  Graph& graph = loss.graph();
  std::vector<std::map<int, Value>> parts = gradient_in_parts(loss, weights, [&](std::int32_t reader) {
    const int stage = stage_of_(reader);
    readers_[stage] = reader;
    return stage;
  });
  const PassScope pass(graph, Pass::gradient);
  const Scope scope(graph, "grad");
  std::vector<Value> own;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto of_home = parts[i].extract(stage_of_(weights[i].node_id()));
    own.push_back(of_home.empty() ? full(graph, weights[i].shape(), 0.0F) : of_home.mapped());
  }
  elsewhere_.push_back(std::move(parts));
  return own;
}

Value Staging::gather(Value weight, std::size_t i, std::size_t term, Value own,
                      const std::function<Value(Value part)>& weighed) {
  Graph& graph = weight.graph();
  const std::string suffix = term == 0 ? "" : std::to_string(term);
  const auto gathered = [&](const std::string& prefix, Value part) {
    gathered_.push_back(gather_of_stage(fmt::format("{}.{}{}", prefix, weight.name(), suffix), weight, part));
    return gathered_.back();
  };
  const Value sum = gathered("stage", weighed(own));
  const std::map<int, Value>& elsewhere = elsewhere_[term][i];
  if (elsewhere.empty()) return sum;
  const Value landing =
      step_variable(graph, fmt::format("stage.landing.{}{}", weight.name(), suffix), weight.spec(), weight.name());
  const Value both = pointwise("add_part", {sum, landing}, scalar::input(0) + scalar::input(1));
  SharedGradient shared{stage_of_(weight.node_id()), {}, landing, {sum, both}};
  for (const auto& [stage, part] : elsewhere) {
    const PassScope of_reader(graph, Pass::update, readers_.at(stage));  // it is gathered there
    shared.parts.emplace(stage, gathered(fmt::format("stage{}", stage), weighed(part)));
  }
  shared_.push_back(std::move(shared));
  return sum;
}

Gradients Staging::measure(const std::vector<Value>& weights, const std::vector<Value>& gradients, bool wants_norm,
                           bool wants_finite) {
  Gradients known;
  if (!wants_norm && !wants_finite) return known;
  Graph& graph = gradients.front().graph();
  std::vector<Value> norms(gradients.size());  // in the order of the gradients, whatever their stages
  for (int stage = 0; stage < stages_; ++stage) {
    std::vector<Value> own, measures;
    std::vector<std::string> names;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (stage_of_(weights[i].node_id()) != stage) continue;
      own.push_back(gradients[i]);
      names.push_back(weights[i].name());
      places.push_back(i);
      if (wants_norm) measures.push_back(reshape(norm_of(gradients[i]), Shape{1}));
    }
    measures_.emplace_back();
    if (own.empty()) continue;
    if (wants_finite) measures.push_back(reshape(all_finite(own, names), Shape{1}));
    const TensorSpec spec{DType::f32, Shape{static_cast<std::int64_t>(measures.size())}};
    const Value variable = step_variable(graph, fmt::format("stage.measures{}", stage), spec);
    measures_.back() = {variable, measures.size() == 1 ? measures[0] : concat(measures, 0)};
    const auto measured = [&](std::size_t i) { return exchanged_number(variable, static_cast<std::int64_t>(i)); };
    for (std::size_t i = 0; wants_norm && i < places.size(); ++i) norms[places[i]] = measured(i);
    if (!wants_finite) continue;
    const Value finite = measured(measures.size() - 1);
    known.finite = known.finite ? known.finite * finite : finite;
  }
  if (wants_norm) known.norm = norm_of_norms(std::move(norms));
  return known;
}

void Staging::restart() {
  for (const Value& sum : gathered_) sum.graph().assign(sum, full(sum.graph(), sum.shape(), 0));
}

}  // namespace concord::optim
