// Variables that are written before the exchange between ranks and read after it.
#include "concord/optim/exchange.hpp"

#include <fmt/format.h>

#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::optim {
namespace {

/// Memory of a step, which no checkpoint keeps.
Value step_variable(Graph& graph, const std::string& name, const TensorSpec& spec) {
  return graph.variable(std::make_shared<Variable>(graph.free_name(name, VariableRole::transient, ""), spec,
                                                   Initializer{}, false, Tensor{}, VariableRole::transient));
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
