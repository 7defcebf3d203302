// Steps in stages: what each stage measures, and what it knows of the others.
#include "concord/optim/staged.hpp"

#include <fmt/format.h>

#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/copy.hpp"
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
  Staging staging{stages, stage_of};
  const Value ok =
      with_host_memory("building a step of training", [&] { return minimized(loss, optimizer, joined, &staging); });
  return {ok, std::move(staging.measures)};
}

/// The norm of all gradients and whether they are finite, from what each stage measures of its own.
Gradients measured_in_stages(const std::vector<Value>& weights, const std::vector<Value>& gradients, Staging& staging,
                             bool wants_norm, bool wants_finite) {
  Graph& graph = gradients.front().graph();
  Gradients known;
  std::vector<Value> norms(gradients.size());  // in the order of the gradients, whatever their stages
  for (int stage = 0; stage < staging.stages; ++stage) {
    std::vector<Value> own, measures;
    std::vector<std::string> names;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (staging.stage_of(weights[i]) != stage) continue;
      own.push_back(gradients[i]);
      names.push_back(weights[i].name());
      places.push_back(i);
      if (wants_norm) measures.push_back(reshape(norm_of(gradients[i]), Shape{1}));
    }
    staging.measures.emplace_back();
    if (own.empty()) continue;
    if (wants_finite) measures.push_back(reshape(all_finite(own, names), Shape{1}));
    const TensorSpec spec{DType::f32, Shape{static_cast<std::int64_t>(measures.size())}};
    const Value variable = step_variable(graph, fmt::format("stage.measures{}", stage), spec);
    staging.measures.back() = {variable, measures.size() == 1 ? measures[0] : concat(measures, 0)};
    const auto measure = [&](std::size_t i) { return exchanged_number(variable, static_cast<std::int64_t>(i)); };
    for (std::size_t i = 0; wants_norm && i < places.size(); ++i) norms[places[i]] = measure(i);
    if (!wants_finite) continue;
    const Value finite = measure(measures.size() - 1);
    known.finite = known.finite ? known.finite * finite : finite;
  }
  if (wants_norm) known.norm = norm_of_norms(std::move(norms));
  return known;
}

}  // namespace concord::optim
