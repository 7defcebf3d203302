// Factors by channel behind a convolution, as a normalisation in evaluation has them, become part of its weights. What
// is added by channel becomes one operand. With and without the factors a convolution rounds to the size of its result
// before the mean is subtracted, so that a mean far from 0 costs accuracy either way.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "concord/compile/factors.hpp"
#include "concord/compile/lowered.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {
namespace {

using F = ScalarFunction;

/// "add+relu": the functions of the formula.
std::string label_of(const Expression& expression) {
  const auto is_zero = [&](std::int32_t argument) {
    const Expression::Instruction& leaf = expression.code()[static_cast<std::size_t>(argument)];
    return leaf.function == F::constant && leaf.value == 0;
  };
  std::string label;
  for (const Expression::Instruction& instruction : expression.code()) {
    const auto [a, b, c] = instruction.arguments;
    if (a < 0) continue;
    const bool is_relu = instruction.function == F::maximum && (is_zero(a) || is_zero(b));
    label += label.empty() ? "" : "+";
    label += is_relu ? "relu" : info_of(instruction.function).name;
  }
  return label;
}

class Folding {
 public:
  explicit Folding(Lowered& program) : program_(program) {
    std::vector<int> readers(program.values.size(), 0);
    producer_.assign(program.values.size(), -1);
    is_fixed_.assign(program.values.size(), false);
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      is_fixed_[v] = program.values[v].kind == LoweredValue::Kind::variable;
      readers[v] += program.values[v].keep ? 2 : 0;
    }
    for (const LoweredAssignment& assignment : program.assignments) {
      is_fixed_[at(assignment.variable)] = false;
      readers[at(assignment.value)] += 2;
    }
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const LoweredNode& node = program.nodes[n];
      const bool is_fixed = !node.inputs.empty() && !is_all_reduce(node) &&
                            std::ranges::all_of(node.inputs, [&](ValueId id) { return is_fixed_[at(id)]; });
      for (const ValueId id : std::set<ValueId>(node.inputs.begin(), node.inputs.end())) ++readers[at(id)];
      for (const ValueId id : node.outputs) {
        is_fixed_[at(id)] = is_fixed;
        producer_[at(id)] = static_cast<std::int32_t>(n);
      }
    }
    for (const int count : readers) is_private_.push_back(count == 1);
  }

  void run() {
    std::vector<LoweredNode> nodes;
    std::set<ValueId> moved;  // results of convolutions that now stand before the formula that reads them
    std::vector<std::vector<LoweredNode>> before(program_.nodes.size());
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      before[n] = folded_into(program_.nodes[n]);
      for (const LoweredNode& node : before[n]) moved.insert(node.outputs[0]);
    }
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      for (LoweredNode& node : before[n]) nodes.push_back(std::move(node));
      if (!moved.contains(program_.nodes[n].outputs[0])) nodes.push_back(std::move(program_.nodes[n]));
    }
    program_.nodes = std::move(nodes);
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

  /// The convolution of fixed weights that makes this value for one reader, else null.
  [[nodiscard]] const LoweredNode* convolution(ValueId id) const {
    if (at(id) >= producer_.size() || producer_[at(id)] < 0 || !is_private_[at(id)]) return nullptr;
    const LoweredNode& node = program_.nodes[static_cast<std::size_t>(producer_[at(id)])];
    const bool is_it = dynamic_cast<const ops::Conv*>(node.op.get()) != nullptr && !program_.is_empty(node) &&
                       program_.value(node.inputs[1]).kind == LoweredValue::Kind::variable &&
                       is_fixed_[at(node.inputs[1])] && program_.value(id).spec.dtype == DType::f32;
    return is_it ? &node : nullptr;
  }

  /// Whether the value does not change from run to run and has one number for each channel of `shape`.
  [[nodiscard]] bool is_by_channel(ValueId id, const Shape& shape) const {
    const TensorSpec& spec = program_.value(id).spec;
    const std::size_t rank = spec.shape.rank(), from_last = shape.rank() - 1;
    return is_fixed_[at(id)] && spec.dtype == DType::f32 && (rank == from_last || rank == from_last + 1) &&
           spec.shape.elements() == shape[1] && spec.shape[rank - from_last] == shape[1];
  }

  /// Rewrites `node` if it is a formula with such factors. Returns what stands before it then: the factors, the weights
  /// with them, and the convolutions.
  std::vector<LoweredNode> folded_into(LoweredNode& node) {
    const auto* pointwise = dynamic_cast<const ops::Pointwise*>(node.op.get());
    if (pointwise == nullptr || node.outputs.size() != 1 || pointwise->expression().uses_coordinates()) return {};
    const TensorSpec spec = program_.value(node.outputs[0]).spec;
    if (spec.dtype != DType::f32 || spec.shape.rank() < 3) return {};
    std::set<int> results, by_channel;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (is_by_channel(id, spec.shape)) by_channel.insert(static_cast<int>(i));
      if (program_.value(id).spec == spec && convolution(id) != nullptr) results.insert(static_cast<int>(i));
    }
    if (results.empty() || by_channel.empty()) return {};
    Factors factors(static_cast<int>(node.inputs.size()), results, by_channel);
    const Scalar formula = factors.without(pointwise->expression().formulas()[0]);
    if (factors.is_useless()) return {};

    std::vector<Scalar> formulas;  // the factors, then the shifts
    for (const auto& [input, factor] : factors.factors()) formulas.push_back(factor);
    formulas.insert(formulas.end(), factors.shifts().begin(), factors.shifts().end());
    std::vector<LoweredNode> before;
    const std::vector<ValueId> channels = add(before, node, formulas, node.inputs, node.name + "/factors");
    std::vector<ValueId> inputs = node.inputs;
    inputs.insert(inputs.end(), channels.end() - static_cast<std::ptrdiff_t>(factors.shifts().size()), channels.end());
    std::size_t k = 0;
    for (const auto& [input, factor] : factors.factors()) {
      LoweredNode conv = *convolution(node.inputs[static_cast<std::size_t>(input)]);
      conv.inputs[1] = weights(before, conv, channels[k++]);
      before.push_back(std::move(conv));
    }
    const Expression expression({formula}, static_cast<int>(inputs.size()));
    const auto [read, own] = read_of(expression, inputs);
    node.op = std::make_shared<const ops::Pointwise>(own, pointwise->types(), label_of(own), spec.shape);
    node.inputs = read;
    return before;
  }

  /// The inputs that the expression reads, and the expression over these alone.
  [[nodiscard]] static std::pair<std::vector<ValueId>, Expression> read_of(const Expression& expression,
                                                                           const std::vector<ValueId>& inputs) {
    std::set<std::int32_t> used;
    for (const Expression::Instruction& instruction : expression.code()) {
      if (instruction.function == F::input) used.insert(instruction.index);
    }
    std::vector<ValueId> read;
    std::vector<Scalar> slots(inputs.size(), Scalar(0.0F));
    for (const std::int32_t index : used) {
      slots[static_cast<std::size_t>(index)] = scalar::input(static_cast<int>(read.size()));
      read.push_back(inputs[static_cast<std::size_t>(index)]);
    }
    std::vector<Scalar> formulas;
    for (const Scalar& formula : expression.formulas()) formulas.push_back(substitute(formula, slots));
    return {read, Expression(std::move(formulas), static_cast<int>(read.size()))};
  }

  ValueId add_value(const TensorSpec& spec, std::string name) {
    LoweredValue& value = program_.values.emplace_back();
    value.spec = spec;
    value.name = std::move(name);
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  /// A node of these formulas over `inputs`, in the pass of `of`; its results.
  std::vector<ValueId> add(std::vector<LoweredNode>& nodes, const LoweredNode& of, std::vector<Scalar> formulas,
                           const std::vector<ValueId>& inputs, const std::string& name) {
    const std::vector<DType> types(formulas.size(), DType::f32);
    const auto [read, own] = read_of(Expression(std::move(formulas), static_cast<int>(inputs.size())), inputs);
    LoweredNode& node = nodes.emplace_back();
    node.op = std::make_shared<const ops::Pointwise>(own, types, "fold");
    node.name = name;
    node.inputs = read;
    node.pass = of.pass;
    for (const TensorSpec& spec : node.op->infer(program_.specs(read))) {
      node.outputs.push_back(add_value(spec, fmt::format("{} {}", name, node.outputs.size())));
    }
    return node.outputs;
  }

  /// The weights of the convolution times `factor`.
  ValueId weights(std::vector<LoweredNode>& nodes, const LoweredNode& conv, ValueId factor) {
    const ValueId plain = conv.inputs[1];
    const Shape shape = program_.value(plain).spec.shape;
    std::vector<std::int64_t> dims(shape.rank(), 1);
    dims[0] = shape[0];
    LoweredNode reshape;
    reshape.op = std::make_shared<const ops::Reshape>(Shape(dims));
    reshape.name = conv.name + "/factor";
    reshape.inputs = {factor};
    reshape.outputs = {add_value({DType::f32, Shape(dims)}, reshape.name)};
    reshape.pass = conv.pass;
    program_.value(reshape.outputs[0]).alias_of = factor;
    const ValueId by_output = reshape.outputs[0];
    nodes.push_back(std::move(reshape));
    const std::vector<ValueId> folded = add(nodes, conv, {scalar::input(0) * scalar::input(1)}, {plain, by_output},
                                            conv.name + "/weights with factors");
    nodes.back().is_folded = true;
    return folded[0];
  }

  Lowered& program_;
  std::vector<std::int32_t> producer_;  // by value, a node or -1
  std::vector<bool> is_fixed_, is_private_;
};

}  // namespace

void fold_factors(Lowered& program) { Folding(program).run(); }

}  // namespace concord
