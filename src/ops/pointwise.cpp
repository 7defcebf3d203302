// Pointwise: the operator itself (shape rule, symbolic gradient, cost) and the ways to build one. The named functions
// made of it are in functions.cpp.
#include "concord/ops/pointwise.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/graph/scalar_functions.hpp"
#include "concord/ops/known_functions.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

bool is_leaf(ScalarFunction function) {
  return function == ScalarFunction::input || function == ScalarFunction::constant ||
         function == ScalarFunction::coordinate;
}

bool is_zero(const Scalar& formula) {
  return formula.node().function == ScalarFunction::constant && formula.node().value == 0;
}

std::vector<bool> used_inputs(const Scalar& formula, std::size_t inputs) {
  std::vector<bool> used(inputs);
  const Expression expression({formula}, static_cast<int>(inputs));
  for (const auto& instruction : expression.code()) {
    if (instruction.function == ScalarFunction::input) used[static_cast<std::size_t>(instruction.index)] = true;
  }
  return used;
}

const Expression* expression_of(const Value& value) {
  const auto* op = dynamic_cast<const Pointwise*>(value.node().op.get());
  return op == nullptr ? nullptr : &op->expression();
}

/// The formula over exactly those values that it uses; a formula that is one of the values is that value.
Value pointwise_of_used(const std::string& label, std::span<const Value> values, const Scalar& formula) {
  if (formula.node().function == ScalarFunction::input) return values[static_cast<std::size_t>(formula.node().index)];
  const std::vector<bool> used = used_inputs(formula, values.size());
  std::vector<Value> operands;
  std::vector<Scalar> renumbered;
  for (std::size_t i = 0; i < values.size(); ++i) {
    renumbered.push_back(scalar::input(static_cast<int>(operands.size())));
    if (used[i]) operands.push_back(values[i]);
  }
  return pointwise(label, std::move(operands), substitute(formula, renumbered));
}

}  // namespace

double operations(const Expression& expression) {
  return static_cast<double>(
      std::ranges::count_if(expression.code(), [](const auto& i) { return !is_leaf(i.function); }));
}

std::vector<TensorSpec> Pointwise::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, static_cast<std::size_t>(expression_.inputs()));
  CONCORD_CHECK(types_.size() == expression_.results().size(), ShapeError, "{}: {} formulas but {} output types",
                name(), expression_.results().size(), types_.size());
  Shape shape = at_least_;
  try {
    for (const TensorSpec& input : inputs) shape = broadcast(shape, input.shape);
  } catch (const ShapeError&) {
    throw ShapeError(fmt::format("{}: shapes {}{}{} do not broadcast", name(), shapes_of(inputs),
                                 at_least_.rank() > 0 ? " to " : "", at_least_.rank() > 0 ? at_least_.str() : ""));
  }
  std::vector<TensorSpec> outputs;
  for (const DType type : types_) outputs.push_back({type, shape});
  return outputs;
}

std::vector<Value> Pointwise::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  if (std::ranges::find(wanted, true) == wanted.end()) return no_gradients(node);
  struct Part {  // one output that the loss depends on
    Scalar formula, dst, diff;
  };
  std::vector<Value> operands = node.inputs;
  std::vector<Part> parts;
  for (std::size_t k = 0; k < diff_dst.size(); ++k) {
    if (!diff_dst[k] || types_[k] != DType::f32) continue;
    const int next = static_cast<int>(operands.size());
    parts.push_back({k == 0 ? surrogate_.value_or(expression_.formulas()[0]) : expression_.formulas()[k],
                     scalar::input(next), scalar::input(next + 1)});
    operands.push_back(output_of(node, static_cast<std::int32_t>(k)));
    operands.push_back(diff_dst[k]);
  }
  std::vector<Value> diffs = no_gradients(node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!wanted[i] || node.inputs[i].dtype() != DType::f32) continue;
    Scalar by_inputs(0.0F);
    Scalar by_outputs(0.0F);  // the same with the outputs' formulas replaced by the outputs
    for (const Part& part : parts) {
      const Scalar slope = derivative(part.formula, static_cast<int>(i));
      by_inputs = by_inputs + scalar::chain(slope, part.diff);
      const Scalar known =
          slope_ ? replace(*slope_, scalar::input(0), part.dst) : replace(slope, part.formula, part.dst);
      by_outputs = by_outputs + scalar::chain(known, part.diff);
    }
    if (is_zero(by_inputs)) continue;
    const auto reads = [&](const Scalar& formula) {
      return std::ranges::count(used_inputs(formula, operands.size()), true);
    };
    // An output is needed by whoever comes next anyway, so it wins at equal numbers of operands.
    const Scalar& formula = reads(by_outputs) <= reads(by_inputs) ? by_outputs : by_inputs;
    diffs[i] = sum_to(pointwise_of_used(label_ + "_backward", operands, formula), node.inputs[i].shape());
  }
  return diffs;
}

Cost Pointwise::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = operations(expression_) * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

std::string Pointwise::attributes() const {
  std::string text = expression_.str();
  for (const DType type : types_) text += fmt::format(" {}", name_of(type));
  if (at_least_.rank() > 0) text += " at least " + at_least_.str();
  return text;
}

}  // namespace ops

std::vector<Value> pointwise(std::string label, std::vector<Value> inputs, std::vector<Scalar> formulas,
                             std::vector<DType> types, Shape at_least) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "pointwise \"{}\" needs at least one value", label);
  const auto results = static_cast<std::int32_t>(formulas.size());
  Graph& graph = inputs.front().graph();
  const Value first = with_host_memory("building a graph", [&] {
    Expression expression(std::move(formulas), static_cast<int>(inputs.size()));
    return graph.add(std::make_shared<ops::Pointwise>(std::move(expression), std::move(types), std::move(label),
                                                      std::move(at_least)),
                     std::move(inputs));
  });
  std::vector<Value> outputs;
  for (std::int32_t k = 0; k < results; ++k) outputs.emplace_back(&graph, first.node_id(), k);
  return outputs;
}

Value pointwise_by_result(std::string label, Value x, const Scalar& formula, const Scalar& slope) {
  Graph& graph = x.graph();
  return with_host_memory("building a graph", [&] {
    return graph.add(std::make_shared<ops::Pointwise>(Expression({formula}, 1), std::vector{DType::f32},
                                                      std::move(label), Shape{}, slope),
                     {x});
  });
}

Value pointwise_with_surrogate(std::string label, std::vector<Value> inputs, const Scalar& formula,
                               const Scalar& surrogate) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "pointwise \"{}\" needs at least one value", label);
  return with_host_memory("building a graph", [&] {
    auto op = std::make_shared<ops::Pointwise>(Expression({formula}, static_cast<int>(inputs.size())),
                                               std::vector{DType::f32}, std::move(label), Shape{},
                                               std::optional<Scalar>{}, surrogate);
    Graph& graph = inputs.front().graph();
    return graph.add(std::move(op), std::move(inputs));
  });
}

Value pointwise(std::string label, std::vector<Value> inputs, const Scalar& formula, DType type, Shape at_least) {
  if (type == DType::f32) {
    if (const auto known = ops::known_function_of(inputs, formula, at_least, ops::expression_of)) {
      inputs = {known->argument};
      const Value result = pointwise(std::string(info_of(known->function).name), std::move(inputs),
                                     std::vector{scalar::apply(known->function, {scalar::input(0)})}, {type}, {})
                               .front();
      result.graph().note_joined(result.node_id(), known->joined);
      return result;
    }
  }
  return pointwise(std::move(label), std::move(inputs), std::vector{formula}, {type}, std::move(at_least)).front();
}

Value full(Graph& graph, Shape shape, float value) {
  return graph.add(std::make_shared<ops::Pointwise>(Expression({Scalar(value)}, 0), std::vector{DType::f32}, "full",
                                                    std::move(shape)),
                   {});
}

Value iota(Graph& graph, std::int64_t n) {
  // Coordinates are computed in float, which holds integers up to 2^24.
  CONCORD_CHECK(n >= 0 && n <= (1 << 24), ArgumentError, "iota: {} is outside [0, 2^24]", n);
  return graph.add(std::make_shared<ops::Pointwise>(Expression({scalar::coordinate(0)}, 0), std::vector{DType::i32},
                                                    "iota", Shape{n}),
                   {});
}

Value cast(Value x, DType type) { return x.dtype() == type ? x : pointwise("cast", {x}, scalar::input(0), type); }

}  // namespace concord
