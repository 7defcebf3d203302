// From a graph to the nodes that are needed.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "concord/compile/section.hpp"
#include "concord/core/check.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord {
namespace {

/// What a section computes, and which of the values that it is given it reads.
struct Needs {
  std::vector<bool> nodes;
  std::set<Value> given;
};

Needs needs_of(const Graph& graph, const Section& section) {
  const std::set<Value> known(section.given.begin(), section.given.end());
  Needs needs{std::vector<bool>(static_cast<std::size_t>(graph.size()), false), {}};
  const auto need = [&](const Value& value) {
    if (known.contains(value)) {
      needs.given.insert(value);
    } else {
      needs.nodes[static_cast<std::size_t>(value.node_id())] = true;
    }
  };
  for (const Value& value : section.outputs) need(value);
  for (const Assignment& assignment : section.assignments) {
    need(assignment.variable);
    need(assignment.value);
  }
  for (std::int32_t id = graph.size(); id-- > 0;) {
    if (!needs.nodes[static_cast<std::size_t>(id)]) continue;
    for (const Value& input : graph.node(id).inputs) need(input);
  }
  return needs;
}

LoweredValue given_value(const Value& value) {
  LoweredValue given;
  given.kind = LoweredValue::Kind::input;
  given.spec = value.spec();
  given.name = value.name();
  given.keep = true;
  return given;
}

LoweredValue lowered_value(const Node& node, std::size_t output, std::string name, bool retains_all) {
  LoweredValue value;
  value.spec = node.outputs[output];
  value.name = std::move(name);
  if (node.variable) {
    value.kind = LoweredValue::Kind::variable;
    value.variable = node.variable;
  } else if (!node.op) {
    value.kind = LoweredValue::Kind::input;
    value.keep = true;
  } else {
    value.keep = retains_all;
  }
  return value;
}

bool has_elements(const TensorSpec& spec) { return spec.shape.elements() > 0; }

/// What a sum over no terms gives, or a product; nothing for an operator that is neither.
std::optional<float> result_of_nothing(const Operator& op) {
  if (dynamic_cast<const ops::Matmul*>(&op) != nullptr || dynamic_cast<const ops::ConvFamily*>(&op) != nullptr) {
    return 0.0F;
  }
  const auto* reduce = dynamic_cast<const ops::Reduce*>(&op);
  if (reduce == nullptr) return std::nullopt;
  switch (reduce->kind()) {
    case ops::ReduceKind::sum:
    case ops::ReduceKind::norm: return 0.0F;
    case ops::ReduceKind::product: return 1.0F;
    default: return std::nullopt;
  }
}

/// A node with elements in its output but none in an input, where it sums over them, becomes one without inputs.
void answer_sum_of_nothing(const Node& node, LoweredNode& lowered) {
  if (std::ranges::all_of(node.inputs, [](const Value& input) { return has_elements(input.spec()); })) return;
  const std::optional<float> result = result_of_nothing(*node.op);
  if (!result || !has_elements(node.outputs[0])) return;
  lowered.inputs.clear();
  lowered.op = std::make_shared<const ops::Pointwise>(Expression({Scalar(*result)}, 0), std::vector{DType::f32}, "full",
                                                      node.outputs[0].shape);
}

/// The node that makes `copied`, a separate value equal to `value`.
LoweredNode copy_node(Lowered& program, ValueId value, std::string name, ValueId& copied) {
  LoweredValue copy = program.value(value);
  copy.kind = LoweredValue::Kind::computed;
  copy.variable = nullptr;
  copy.alias_of = -1;
  copy.keep = false;
  copy.name = name;
  // Every axis stays in its place. A formula would take whole numbers through float.
  std::vector<std::size_t> order(copy.spec.shape.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  program.values.push_back(std::move(copy));
  copied = static_cast<ValueId>(program.values.size() - 1);
  return {std::make_shared<const ops::Transpose>(std::move(order)), std::move(name), {value}, {copied}, nullptr};
}

/// An output that is a variable under another shape is read after the run, when an assignment has changed the variable:
/// it becomes a view of a copy that is made before all else.
void keep_from_assignments(Lowered& program, std::span<const Assignment> assignments, ValueId output,
                           std::map<ValueId, ValueId>& copies) {
  const ValueId root = program.root(output);
  const LoweredValue& stored = program.value(root);
  const bool is_assigned = stored.variable && std::ranges::any_of(assignments, [&](const Assignment& assignment) {
                             return assignment.variable.node().variable == stored.variable;
                           });
  if (root == output || !is_assigned) return;
  const auto [place, is_new] = copies.try_emplace(root, -1);
  if (is_new) {
    LoweredNode copy = copy_node(program, root, "before/" + stored.name, place->second);
    program.nodes.insert(program.nodes.begin(), std::move(copy));
  }
  const ValueId copied = place->second;
  program.value(output).alias_of = copied;
  for (LoweredNode& node : program.nodes) {
    if (node.outputs[0] == output) node.inputs[0] = copied;
  }
}

/// The nodes in the order of these places; those of the same place keep theirs.
void sort_nodes(Lowered& program, const std::vector<std::size_t>& places) {
  std::vector<std::size_t> order(program.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return places[n]; });
  std::vector<LoweredNode> nodes;
  nodes.reserve(order.size());
  for (const std::size_t n : order) nodes.push_back(std::move(program.nodes[n]));
  program.nodes = std::move(nodes);
}

}  // namespace

std::vector<TensorSpec> Lowered::specs(const std::vector<ValueId>& ids) const {
  std::vector<TensorSpec> specs;
  specs.reserve(ids.size());
  for (const ValueId id : ids) specs.push_back(value(id).spec);
  return specs;
}

ValueId Lowered::root(ValueId id) const {
  while (value(id).alias_of >= 0) id = value(id).alias_of;
  return id;
}

ValueId Lowered::source(ValueId id) const {
  const ValueId stored = root(id);
  return value(stored).reorder_of < 0 ? stored : source(value(stored).reorder_of);
}

std::size_t Lowered::bytes(ValueId id) const {
  const LoweredValue& v = value(id);
  return v.layout ? v.layout->bytes() : v.spec.bytes();
}

bool Lowered::in_place(const LoweredNode& node, std::size_t i, std::size_t k) {
  return (node.op && node.op->in_place(i, k)) || (k == 0 && std::cmp_equal(i, node.overwrites));
}

bool Lowered::is_empty(const LoweredNode& node) const {
  return std::ranges::none_of(node.outputs, [&](ValueId id) { return has_elements(value(id).spec); });
}

std::vector<Assignment> assignments_of(const Graph& graph, RunPart part) {
  const std::span<const Assignment> all = graph.assignments();
  std::vector<Assignment> made;
  for (const Assignment& assignment : all) {
    const auto replaces = [&](const Assignment& other) {
      return !other.is_early && other.variable == assignment.variable;
    };
    const bool is_last = !assignment.is_early || std::ranges::none_of(all, replaces);
    const bool is_of_part =
        part == RunPart::whole ? is_last : assignment.is_early == (part == RunPart::before_exchange);
    if (is_of_part) made.push_back(assignment);
  }
  return made;
}

bool is_all_reduce(const LoweredNode& node) { return dynamic_cast<const ops::AllReduce*>(node.op.get()) != nullptr; }

Lowered lower(const Graph& graph, std::span<const Value> outputs, bool retains_all, RunPart part) {
  return lower_section(graph, Section{{outputs.begin(), outputs.end()}, assignments_of(graph, part)}, retains_all);
}

std::vector<VariablePtr> variables_of(const Graph& graph, const Section& section) {
  const Needs needs = needs_of(graph, section);
  std::vector<VariablePtr> variables;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (needs.nodes[static_cast<std::size_t>(id)] && graph.node(id).variable) {
      variables.push_back(graph.node(id).variable);
    }
  }
  return variables;
}

Lowered lower_section(const Graph& graph, const Section& section, bool retains_all) {
  const std::vector<Value>& outputs = section.outputs;
  const std::vector<Assignment>& assignments = section.assignments;
  const Needs needs = needs_of(graph, section);
  Lowered program;
  std::map<Value, ValueId> ids;
  for (const Value& value : needs.given) {
    ids.emplace(value, static_cast<ValueId>(program.values.size()));
    program.values.push_back(given_value(value));
  }
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (!needs.nodes[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    LoweredNode lowered{node.op, node.name, {}, {}, nullptr};
    lowered.pass = node.pass;
    for (const Value& input : node.inputs) lowered.inputs.push_back(ids.at(input));
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const Value value(const_cast<Graph*>(&graph), id, static_cast<std::int32_t>(k));
      const auto value_id = static_cast<ValueId>(program.values.size());
      program.values.push_back(lowered_value(node, k, value.name(), retains_all));
      if (!ids.emplace(value, value_id).second) program.values.back().name += " (computed)";  // it is given, too
      lowered.outputs.push_back(value_id);
    }
    if (!node.op) continue;
    answer_sum_of_nothing(node, lowered);
    if (node.op->is_alias()) program.value(lowered.outputs[0]).alias_of = lowered.inputs[0];
    program.nodes.push_back(std::move(lowered));
  }
  for (const Value& output : outputs) program.value(ids.at(output)).keep = true;
  std::map<ValueId, ValueId> copies;
  for (const Value& output : outputs) keep_from_assignments(program, assignments, ids.at(output), copies);

  for (const Assignment& assignment : assignments) {
    ValueId value = ids.at(assignment.value);
    const ValueId variable = ids.at(assignment.variable);
    const LoweredValue& root = program.value(program.root(value));
    const bool taken = std::any_of(program.assignments.begin(), program.assignments.end(),
                                   [&](const auto& other) { return program.root(other.value) == program.root(value); });
    if (root.kind != LoweredValue::Kind::computed || taken) {
      ValueId copied = -1;
      program.nodes.push_back(copy_node(program, value, "copy/" + program.value(variable).name, copied));
      value = copied;
    }
    program.assignments.push_back({variable, value});
  }
  return program;
}

void hurry_updates(Lowered& program) {
  std::vector<std::size_t> places(program.nodes.size());  // behind the node with this number, or its own
  std::vector<std::size_t> made_at(program.values.size(), 0);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const LoweredNode& node = program.nodes[n];
    std::size_t place = node.pass == Pass::update ? 0 : n;
    if (node.pass == Pass::update) {
      for (const ValueId id : node.inputs) place = std::max(place, made_at[static_cast<std::size_t>(id)]);
    }
    places[n] = place;
    for (const ValueId id : node.outputs) made_at[static_cast<std::size_t>(id)] = place;
  }
  sort_nodes(program, places);
}

std::size_t late_place(const LoweredValue& value, const LateVariables& late) {
  if (value.kind != LoweredValue::Kind::variable) return 0;
  const auto found = std::ranges::find_if(
      late, [&](const auto& names) { return std::ranges::find(names, value.name) != names.end(); });
  return found == late.end() ? 0 : static_cast<std::size_t>(found - late.begin()) + 1;
}

std::vector<std::size_t> put_late_last(Lowered& program, const LateVariables& late) {
  std::vector<std::size_t> awaited;
  for (const LoweredValue& value : program.values) awaited.push_back(late_place(value, late));
  std::vector<std::size_t> places;
  for (const LoweredNode& node : program.nodes) {
    std::size_t place = 0;
    for (const ValueId id : node.inputs) place = std::max(place, awaited[static_cast<std::size_t>(program.root(id))]);
    for (const ValueId id : node.outputs) awaited[static_cast<std::size_t>(id)] = place;
    places.push_back(place);
  }
  sort_nodes(program, places);
  std::ranges::sort(places);
  return places;
}

}  // namespace concord
