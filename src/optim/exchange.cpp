// Variables that are written before the exchange between ranks and read after it.
#include "concord/optim/exchange.hpp"

#include <fmt/format.h>

#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::optim {
namespace {

/// Memory of a step, which no checkpoint keeps.
Value step_variable(Graph& graph, const std::string& name, const TensorSpec& spec) {
  return state_variable(graph, {.name = name, .spec = spec, .init = {}, .role = VariableRole::transient});
}

/// Has `part` summed, over the runs of this rank too.
void exchange_sum(Value variable, Value part, int accumulate) {
  Graph& graph = variable.graph();
  if (accumulate == 1) {
    graph.exchange(variable, part);
    return;
  }
  graph.exchange(variable, pointwise("accumulate", {variable, part}, scalar::input(0) + scalar::input(1)));
  graph.assign(variable, full(graph, variable.shape(), 0));
}

}  // namespace

Value exchange_numbers(Graph& graph, const std::string& name, std::span<const Value> numbers, int accumulate) {
  std::vector<Value> flat;
  for (const Value& number : numbers) flat.push_back(reshape(number, Shape{1}));
  const Value variable = step_variable(graph, name, {DType::f32, Shape{static_cast<std::int64_t>(numbers.size())}});
  exchange_sum(variable, flat.size() == 1 ? flat[0] : concat(flat, 0), accumulate);
  return variable;
}

Value exchanged_number(Value numbers, std::int64_t i) { return reshape(slice(numbers, 0, i, i + 1), Shape{}); }

std::vector<Joined> join_ranks(Graph& graph, const std::vector<LossTerm>& terms, const MinimizeOptions& options,
                               Value& finite_loss) {
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
  const Value sums =
      exchange_numbers(graph, counter_name(kExchangedNumbers, options.name), numbers, options.accumulate);
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

Value exchange_gradient(Value weight, Value part, std::size_t term, int accumulate) {
  const std::string suffix = term == 0 ? "" : std::to_string(term);
  const Value variable =
      step_variable(weight.graph(), fmt::format("exchange.{}{}", weight.name(), suffix), weight.spec());
  exchange_sum(variable, part, accumulate);
  return variable;
}

std::vector<Assignment> assign_before_exchange(Graph& graph, const std::vector<Assignment>& assignments,
                                               int accumulate) {
  std::vector<Assignment> waiting;
  for (const Assignment& assignment : assignments) {
    if (accumulate > 1) {
      graph.assign_early(assignment.variable, assignment.value);
      continue;
    }
    const Value kept =
        step_variable(graph, fmt::format("exchange.{}", assignment.variable.name()), assignment.variable.spec());
    graph.assign_early(kept, assignment.value);
    waiting.push_back({assignment.variable, kept});
  }
  return waiting;
}

}  // namespace concord::optim
