// Variables that are written before the exchange between ranks and read after it.
#include "concord/optim/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/ops/all_finite.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::optim {
namespace {

/// Has `part` summed, over the runs of this rank too.
Exchanged exchange_sum(Value variable, Value part, int accumulate) {
  Graph& graph = variable.graph();
  if (accumulate > 1) part = pointwise("accumulate", {variable, part}, scalar::input(0) + scalar::input(1));
  graph.exchange(variable, part);
  if (accumulate > 1) graph.assign(variable, full(graph, variable.shape(), 0));
  return {variable, part};
}

}  // namespace

Value step_variable(Graph& graph, const std::string& name, const TensorSpec& spec, const std::string& of) {
  return graph.variable(std::make_shared<Variable>(graph.free_name(name, VariableRole::transient, of), spec,
                                                   Initializer{}, false, Tensor{}, VariableRole::transient, of));
}

namespace {

Value in_one_value(std::span<const Value> numbers) {
  std::vector<Value> flat;
  for (const Value& number : numbers) flat.push_back(reshape(number, Shape{1}));
  return flat.size() == 1 ? flat[0] : concat(flat, 0);
}

void gather_early(Value variable, Value part) {
  variable.graph().assign_early(variable,
                                pointwise("accumulate", {variable, part}, scalar::input(0) + scalar::input(1)));
}

}  // namespace

Value gather_numbers(Graph& graph, const std::string& name, std::span<const Value> numbers) {
  const Value variable = step_variable(graph, name, {DType::f32, Shape{static_cast<std::int64_t>(numbers.size())}});
  gather_early(variable, in_one_value(numbers));
  return variable;
}

Value gather_of_stage(const std::string& name, Value weight, Value part) {
  const Value variable = step_variable(weight.graph(), name, weight.spec(), weight.name());
  gather_early(variable, part);
  return variable;
}

Value exchange_numbers(Graph& graph, const std::string& name, std::span<const Value> numbers, int accumulate) {
  const Value variable = step_variable(graph, name, {DType::f32, Shape{static_cast<std::int64_t>(numbers.size())}});
  return exchange_sum(variable, in_one_value(numbers), accumulate).variable;
}

Value exchanged_number(Value numbers, std::int64_t i) { return reshape(slice(numbers, 0, i, i + 1), Shape{}); }

Exchanged exchange_gradient(Value weight, Value part, std::size_t term, int accumulate) {
  const std::string suffix = term == 0 ? "" : std::to_string(term);
  const Value variable =
      step_variable(weight.graph(), fmt::format("exchange.{}{}", weight.name(), suffix), weight.spec());
  return exchange_sum(variable, part, accumulate);
}

std::vector<std::size_t> last_gradients(const std::vector<Value>& weights) {
  constexpr std::size_t kLeast = std::size_t{4} << 20, kAtOnce = std::size_t{16} << 20;
  std::size_t all = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    all += weights[i].spec().bytes();
    order.push_back(i);
  }
  if (all <= kAtOnce) return {};
  std::ranges::sort(order, {}, [&](std::size_t i) { return weights[i].node_id(); });
  std::size_t bytes = 0, count = 0;
  while (bytes < kLeast) bytes += weights[order[count++]].spec().bytes();
  order.resize(count);
  return order;
}

Value exchange_bad(Graph& graph, std::vector<Value> own, std::vector<std::string> names, const std::string& name) {
  const Value variable = step_variable(graph, name, {DType::f32, Shape{1}});
  Value bad = full(graph, Shape{1}, 0);
  if (!own.empty()) {
    const Value finite = all_finite(std::move(own), std::move(names));
    bad = reshape(pointwise("bad", {finite}, 1.0F - scalar::input(0)), Shape{1});
  }
  graph.exchange(variable, bad);
  return reshape(variable, Shape{});
}

std::vector<Assignment> assign_before_exchange(Graph& graph, const std::vector<Assignment>& assignments,
                                               int accumulate) {
  std::vector<Assignment> waiting;
  for (const Assignment& assignment : assignments) {
    if (accumulate > 1) {
      graph.assign_early(assignment.variable, assignment.value);
      waiting.push_back({assignment.variable, assignment.variable});  // in place of the assignment of a whole step
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
