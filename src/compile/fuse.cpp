// Fusion of pointwise operators with each other, into the operators before them, and into those behind them.
#include <algorithm>
#include <optional>
#include <set>

#include "concord/compile/lowered.hpp"
#include "concord/compile/rearranged.hpp"
#include "concord/graph/constant_steps.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/prologued.hpp"

namespace concord {
namespace {

// Beyond these a kernel runs out of registers or arguments on small devices.
constexpr std::size_t kMostInputs = 12;
constexpr std::size_t kMostInstructions = 96;

std::vector<ValueId> distinct(std::vector<ValueId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Who makes and who reads each value.
struct Uses {
  explicit Uses(const Lowered& program)
      : producer(program.values.size(), -1), readers(program.values.size(), 0), pinned(program.values.size(), false) {
    for (std::size_t i = 0; i < program.nodes.size(); ++i) {
      for (const ValueId id : program.nodes[i].outputs) producer[static_cast<std::size_t>(id)] = static_cast<int>(i);
      for (const ValueId id : distinct(program.nodes[i].inputs)) ++readers[static_cast<std::size_t>(id)];
    }
    for (std::size_t v = 0; v < program.values.size(); ++v) pinned[v] = program.values[v].keep;
    for (const LoweredAssignment& assignment : program.assignments) {
      pinned[static_cast<std::size_t>(assignment.value)] = true;
    }
  }
  // Whether only one reader needs the value.
  [[nodiscard]] bool is_private(ValueId id) const {
    const auto v = static_cast<std::size_t>(id);
    return producer[v] >= 0 && readers[v] == 1 && !pinned[v];
  }

  std::vector<int> producer;
  std::vector<int> readers;
  std::vector<bool> pinned;
};

// Replaces the value that `inner` makes by its formula. Returns false if the result would be too big.
bool merge_pointwise(Lowered& program, const LoweredNode& inner, LoweredNode& outer) {
  const auto* inner_op = as_pointwise(inner);
  const auto* outer_op = as_pointwise(outer);
  std::vector<ValueId> inputs;
  const auto slot = [&](ValueId id) {
    const auto found = std::find(inputs.begin(), inputs.end(), id);
    if (found != inputs.end()) return scalar::input(static_cast<int>(found - inputs.begin()));
    inputs.push_back(id);
    return scalar::input(static_cast<int>(inputs.size() - 1));
  };
  std::vector<Scalar> inner_slots;
  for (const ValueId id : inner.inputs) inner_slots.push_back(slot(id));
  const Scalar formula = substitute(inner_op->expression().formulas()[0], inner_slots);
  std::vector<Scalar> outer_slots;
  for (const ValueId id : outer.inputs) outer_slots.push_back(id == inner.outputs[0] ? formula : slot(id));
  std::vector<Scalar> formulas;
  for (const Scalar& f : outer_op->expression().formulas()) {
    formulas.push_back(merge_constant_steps(substitute(f, outer_slots)));
  }
  Expression expression(std::move(formulas), static_cast<int>(inputs.size()));
  if (inputs.size() > kMostInputs || expression.code().size() > kMostInstructions) return false;
  outer.op = std::make_shared<const ops::Pointwise>(std::move(expression), outer_op->types(),
                                                    joined_label(inner_op->name(), outer_op->name()),
                                                    program.value(outer.outputs[0]).spec.shape);
  outer.inputs = std::move(inputs);
  return true;
}

void merge_chains(Lowered& program) {
  Uses uses(program);
  std::vector<bool> gone(program.nodes.size(), false);
  for (LoweredNode& outer : program.nodes) {
    if (!as_pointwise(outer)) continue;
    for (bool merged = true; merged;) {
      merged = false;
      for (const ValueId id : std::vector<ValueId>(outer.inputs)) {
        if (!uses.is_private(id)) continue;
        const auto position = static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(id)]);
        const LoweredNode inner = program.nodes[position];
        const TensorSpec& spec = program.value(id).spec;
        if (!as_pointwise(inner) || inner.outputs.size() != 1 || spec.dtype != DType::f32 ||
            spec.shape != program.value(outer.outputs[0]).spec.shape) {
          continue;
        }
        const std::vector<ValueId> before = outer.inputs;
        if (!merge_pointwise(program, inner, outer)) continue;
        gone[position] = true;
        for (const ValueId input : distinct(inner.inputs)) {  // read by `outer` now, perhaps by both before
          if (std::find(before.begin(), before.end(), input) != before.end())
            --uses.readers[static_cast<std::size_t>(input)];
        }
        merged = true;
        break;
      }
    }
  }
  std::size_t i = 0;
  std::erase_if(program.nodes, [&](const LoweredNode&) { return gone[i++]; });
}

// The input of `node`, a formula of single numbers, that is a reshaped result which it may be the epilogue of.
std::optional<ValueId> reshaped_base(const Lowered& program, const Uses& uses, const LoweredNode& node,
                                     const Device& device, Precision precision) {
  const auto* pointwise = as_pointwise(node);
  if (!pointwise || node.outputs.size() != 1 || pointwise->expression().uses_coordinates()) return {};
  const TensorSpec& spec = program.value(node.outputs[0]).spec;
  if (spec.dtype != DType::f32 || spec.shape.elements() != 1) return {};
  const auto producer = [&](ValueId id) -> const LoweredNode& {
    return program.nodes[static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(id)])];
  };
  for (const ValueId id : node.inputs) {
    if (!uses.is_private(id) || !producer(id).op->is_alias()) continue;
    const ValueId from = producer(id).inputs[0];
    if (!uses.is_private(from)) continue;
    const LoweredNode& base = producer(from);
    const TensorSpec& made = program.value(from).spec;
    const auto [epilogue, extra] = with_first(node, *pointwise, id);
    const bool fits = std::ranges::all_of(
        extra, [&](ValueId other) { return program.value(other).spec.shape.rank() <= made.shape.rank(); });
    if (fits && made.dtype == DType::f32 && !as_pointwise(base) && !base.op->is_alias() && base.outputs.size() == 1 &&
        device.supports_epilogue(*base.op, program.specs(base.inputs), made, epilogue, program.specs(extra),
                                 precision)) {
      return id;
    }
  }
  return {};
}

// A formula of single numbers, one of which is a reshaped result, goes in front of the reshape where it can then be an
// epilogue: the division of a mean, whose sum has dimensions that the mean has not.
void move_before_reshapes(Lowered& program, const Device& device, Precision precision) {
  const Uses uses(program);
  std::set<ValueId> gone;
  std::vector<LoweredNode> nodes;
  for (const LoweredNode& node : program.nodes) {
    nodes.push_back(node);
    const std::optional<ValueId> reshaped = reshaped_base(program, uses, node, device, precision);
    if (!reshaped) continue;
    gone.insert(*reshaped);
    const ValueId from = program.value(*reshaped).alias_of, result = node.outputs[0];
    const TensorSpec spec = program.value(from).spec;
    const auto moved = static_cast<ValueId>(program.values.size());
    LoweredValue& value = program.values.emplace_back();
    value.name = program.value(result).name;  // by which replays know it
    value.spec = spec;
    program.value(result).alias_of = moved;
    const auto* pointwise = as_pointwise(node);
    LoweredNode& formula = nodes.back();
    formula.op = std::make_shared<const ops::Pointwise>(pointwise->expression(), pointwise->types(),
                                                        std::string(pointwise->name()), spec.shape);
    std::ranges::replace(formula.inputs, *reshaped, from);
    formula.outputs = {moved};
    LoweredNode& reshape = nodes.emplace_back();
    reshape.op = std::make_shared<const ops::Reshape>(program.value(result).spec.shape);
    reshape.name = node.name;
    reshape.inputs = {moved};
    reshape.outputs = {result};
    reshape.pass = node.pass;
  }
  std::erase_if(nodes, [&](const LoweredNode& node) { return gone.contains(node.outputs[0]); });
  program.nodes = std::move(nodes);
}

// Into a base of several results only where every other operand is there before it: the merged node takes the base's
// place, so that readers of the other results stay behind it.
void merge_epilogues(Lowered& program, const Device& device, Precision precision) {
  Uses uses(program);
  std::vector<bool> gone(program.nodes.size(), false);
  for (std::size_t own = 0; own < program.nodes.size(); ++own) {
    LoweredNode& node = program.nodes[own];
    const auto* pointwise = as_pointwise(node);
    if (!pointwise || node.outputs.size() != 1 || pointwise->expression().uses_coordinates()) continue;
    const TensorSpec& spec = program.value(node.outputs[0]).spec;
    for (const ValueId id : node.inputs) {
      if (!uses.is_private(id) || program.value(id).spec != spec || spec.dtype != DType::f32) continue;
      const auto position = static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(id)]);
      LoweredNode& base = program.nodes[position];
      if (as_pointwise(base) || base.op->is_alias() || base.outputs[0] != id || program.is_empty(base)) continue;
      const bool has_more = base.outputs.size() > 1;
      if (has_more && std::ranges::any_of(node.inputs, [&](ValueId other) {
            return other != id && uses.producer[static_cast<std::size_t>(other)] >= static_cast<int>(position);
          })) {
        continue;
      }
      const auto [epilogue, extra] = with_first(node, *pointwise, id);
      const std::vector<TensorSpec> base_inputs = program.specs(base.inputs);
      if (!device.supports_epilogue(*base.op, base_inputs, spec, epilogue, program.specs(extra), precision)) continue;
      std::vector<ValueId> inputs = base.inputs;
      inputs.insert(inputs.end(), extra.begin(), extra.end());
      const std::string label = joined_label(base.op->name(), pointwise->name());
      node.op = std::make_shared<const ops::Fused>(base.op, base.inputs.size(), epilogue, label);
      node.inputs = std::move(inputs);
      if (has_more) {
        uses.producer[static_cast<std::size_t>(node.outputs[0])] = static_cast<int>(position);
        node.outputs.insert(node.outputs.end(), base.outputs.begin() + 1, base.outputs.end());
        std::swap(base, node);
      }
      gone[has_more ? own : position] = true;
      break;
    }
  }
  std::size_t i = 0;
  std::erase_if(program.nodes, [&](const LoweredNode&) { return gone[i++]; });
}

// What is left goes into the operator that reads it. An operand of the result's shape takes the result's place.
void merge_prologues(Lowered& program, const Device& device, Precision precision) {
  const Uses uses(program);
  std::vector<bool> gone(program.nodes.size(), false);
  for (LoweredNode& node : program.nodes) {
    if (as_pointwise(node) || node.op->is_alias() || node.inputs.empty() || program.is_empty(node)) continue;
    const ValueId id = node.inputs[0];
    if (!uses.is_private(id) || std::ranges::count(node.inputs, id) > 1) continue;
    const auto position = static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(id)]);
    const LoweredNode& inner = program.nodes[position];
    const auto* pointwise = as_pointwise(inner);
    if (!pointwise || inner.outputs.size() != 1 || pointwise->expression().uses_coordinates()) continue;
    const TensorSpec& spec = program.value(id).spec;
    const auto first =
        std::ranges::find_if(inner.inputs, [&](ValueId operand) { return program.value(operand).spec == spec; });
    if (spec.dtype != DType::f32 || first == inner.inputs.end()) continue;
    const auto [prologue, extra] = with_first(inner, *pointwise, *first);
    if (!device.supports_prologue(*node.op, program.specs(node.inputs), prologue, program.specs(extra), precision)) {
      continue;
    }
    node.op = std::make_shared<const ops::Prologued>(node.op, node.inputs.size(), prologue,
                                                     joined_label(pointwise->name(), node.op->name()));
    node.inputs[0] = *first;
    node.inputs.insert(node.inputs.end(), extra.begin(), extra.end());
    gone[position] = true;
  }
  std::size_t i = 0;
  std::erase_if(program.nodes, [&](const LoweredNode&) { return gone[i++]; });
}

}  // namespace

void fuse(Lowered& program, const Device& device, const FuseOptions& options) {
  const Precision precision = options.precision;
  merge_chains(program);
  multiply_patches(program, device, precision);
  if (options.folds && device.folds_factors()) fold_factors(program);
  if (!options.pauses) join_loss_gradients(program, device);
  join_finite_numbers(program, device);
  join_scatters(program, device);
  move_before_reshapes(program, device, precision);
  merge_epilogues(program, device, precision);
  merge_prologues(program, device, precision);
}

}  // namespace concord
