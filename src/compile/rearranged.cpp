// The operands of a formula in another order, and nodes and names of joined operators.
#include "concord/compile/rearranged.hpp"

#include <fmt/format.h>

#include "concord/ops/operator_group.hpp"

namespace concord {

Rearranged with_first(const LoweredNode& node, const ops::Pointwise& pointwise, ValueId first) {
  std::vector<ValueId> others;
  std::vector<Scalar> slots, formulas;
  for (const ValueId id : node.inputs) {
    if (id != first) others.push_back(id);
    slots.push_back(scalar::input(id == first ? 0 : static_cast<int>(others.size())));
  }
  for (const Scalar& formula : pointwise.expression().formulas()) formulas.push_back(substitute(formula, slots));
  return {Expression(std::move(formulas), static_cast<int>(others.size()) + 1), std::move(others)};
}

LoweredNode merged_node(const Lowered& program, std::span<const std::size_t> places, std::string_view label) {
  const LoweredNode &first = program.nodes[places.front()], &last = program.nodes[places.back()];
  std::vector<ops::OperatorGroup::Member> members;
  LoweredNode merged;
  for (const std::size_t n : places) {
    const LoweredNode& node = program.nodes[n];
    members.push_back({node.op, node.inputs.size()});
    merged.inputs.insert(merged.inputs.end(), node.inputs.begin(), node.inputs.end());
    merged.outputs.push_back(node.outputs[0]);
  }
  merged.op = std::make_shared<const ops::OperatorGroup>(std::move(members), label);
  merged.name = fmt::format("{} … {}", first.name, last.name);
  merged.pass = last.pass;
  return merged;
}

std::string joined_label(std::string_view first, std::string_view second) {
  constexpr std::size_t kLongest = 40;
  std::string label = std::string(first) + "+" + std::string(second);
  if (label.size() > kLongest) label = label.substr(0, kLongest - 1) + "…";
  return label;
}

}  // namespace concord
