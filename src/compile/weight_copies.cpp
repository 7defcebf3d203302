// Copies of weights in another type, which kernels read: the update of a weight writes its copy beside the new value,
// so that no run has to make it again.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord {
namespace {

using Reach = ops::PointwiseGroup::Reach;

/// What a member's result is written as once more: the number of the result, and the type of the copy.
using Copied = std::pair<std::size_t, DType>;

struct Member {
  std::size_t number;
  ValueId copy = -1;
};

/// The first row-major copy in another type of each fp32 variable. A variable of another type would round what the
/// formula gives, and its copy would not.
std::map<ValueId, ValueId> copies_of_variables(const Lowered& program) {
  std::map<ValueId, ValueId> copies;
  for (const LoweredNode& node : program.nodes) {
    if (node.op) continue;
    const ValueId variable = program.root(node.inputs[0]), copy = node.outputs[0];
    const Layout& layout = program.value(copy).layout;
    const LoweredValue& source = program.value(variable);
    const bool holds_floats = source.kind == LoweredValue::Kind::variable && source.spec.dtype == DType::f32;
    if (holds_floats && layout && layout->row_major_type()) copies.emplace(variable, copy);
  }
  return copies;
}

/// By value that is assigned to a variable with such a copy, the copy.
std::map<ValueId, ValueId> copies_of_assigned(const Lowered& program) {
  const std::map<ValueId, ValueId> copies = copies_of_variables(program);
  std::map<ValueId, ValueId> assigned;
  for (const LoweredAssignment& assignment : program.assignments) {
    const auto found = copies.find(assignment.variable);
    if (found != copies.end()) assigned.emplace(assignment.value, found->second);
  }
  return assigned;
}

/// The value that an update writes over the copy of a weight, assigned to it.
ValueId next_of(Lowered& program, ValueId copy, const Shape& weight, DType type) {
  LoweredValue next;
  next.spec = {type, weight};
  next.name = program.value(copy).name + ", updated";
  program.values.push_back(std::move(next));
  const auto id = static_cast<ValueId>(program.values.size() - 1);
  program.assignments.push_back({copy, id});
  return id;
}

/// These members of the group; with `copied`, each has a further result.
LoweredNode part_of(Lowered& program, const LoweredNode& node, const std::vector<Member>& members,
                    const std::optional<Copied>& copied) {
  const auto& group = dynamic_cast<const ops::PointwiseGroup&>(*node.op);
  const std::span<const Reach> reach = group.reach();
  LoweredNode part;
  for (std::size_t i = 0; i < reach.size(); ++i) {
    if (reach[i] == Reach::shared) part.inputs.push_back(node.inputs[group.place_of(0, i)]);
  }
  for (const Member& member : members) {
    for (std::size_t i = 0; i < reach.size(); ++i) {
      if (reach[i] != Reach::shared) part.inputs.push_back(node.inputs[group.place_of(member.number, i)]);
    }
    for (std::size_t k = 0; k < group.results(); ++k) {
      part.outputs.push_back(node.outputs[member.number * group.results() + k]);
    }
    if (!copied) continue;
    const Shape weight = program.value(part.outputs.back()).spec.shape;
    part.outputs.push_back(next_of(program, member.copy, weight, copied->second));
  }
  std::vector<Scalar> formulas = group.member().expression().formulas();
  std::vector<DType> types = group.member().types();
  if (copied) {
    const Scalar weight = formulas[copied->first];
    formulas.push_back(weight);
    types.push_back(copied->second);
  }
  part.op = std::make_shared<const ops::PointwiseGroup>(
      Expression(std::move(formulas), group.member().expression().inputs()), std::move(types), group.member().name(),
      std::vector<Reach>(reach.begin(), reach.end()), members.size());
  part.name = copied ? node.name + " and copies" : node.name;
  part.pass = node.pass;
  return part;
}

}  // namespace

std::vector<LoweredNode> with_copies(Lowered& program, LoweredNode node) {
  const auto* const group = dynamic_cast<const ops::PointwiseGroup*>(node.op.get());
  if (group == nullptr) return {std::move(node)};
  const std::map<ValueId, ValueId> copies = copies_of_assigned(program);
  std::map<std::optional<Copied>, std::vector<Member>> parts;
  for (std::size_t m = 0; m < group->members(); ++m) {
    std::optional<Copied> copied;
    Member member{m};
    for (std::size_t k = 0; k < group->results() && !copied; ++k) {
      const auto found = copies.find(node.outputs[m * group->results() + k]);
      if (found == copies.end()) continue;
      member.copy = found->second;
      copied = {k, *program.value(member.copy).layout->row_major_type()};
    }
    parts[copied].push_back(member);
  }
  if (parts.size() == 1 && !parts.begin()->first) return {std::move(node)};
  std::vector<LoweredNode> nodes;
  for (const auto& [copied, members] : parts) nodes.push_back(part_of(program, node, members, copied));
  return nodes;
}

}  // namespace concord
