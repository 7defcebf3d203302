// Grouping of reorders of weights, most of which take less time than their launch.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "concord/compile/lowered.hpp"

namespace concord {
namespace {

/// Whether it brings a variable, which is there when a run begins, into a layout that is made in groups.
bool is_member(const Lowered& program, const LoweredNode& node, const LateVariables& late) {
  if (node.op) return false;
  const LoweredValue& variable = program.value(node.inputs[0]);
  const Layout& made = program.value(node.outputs[0]).layout;
  return variable.kind == LoweredValue::Kind::variable && late_place(variable, late) == 0 && made != nullptr &&
         made->is_made_in_groups();
}

/// Makes one node of these.
void merge(Lowered& program, Device& device, const std::vector<std::size_t>& members) {
  if (members.size() < 2) return;
  std::vector<Device::Reorder> reorders;
  LoweredNode merged;
  for (const std::size_t n : members) {
    const LoweredNode& node = program.nodes[n];
    const LoweredValue& made = program.value(node.outputs[0]);
    reorders.push_back({made.spec, nullptr, made.layout});
    merged.inputs.push_back(node.inputs[0]);
    merged.outputs.push_back(node.outputs[0]);
    merged.invariant = node.invariant;
  }
  merged.kernel = device.prepare_reorders(reorders);
  if (merged.kernel == nullptr) return;
  merged.name = fmt::format("{} … {}", program.nodes[members.front()].name, program.nodes[members.back()].name);
  program.nodes[members.front()] = std::move(merged);
  std::size_t n = 0;
  std::erase_if(program.nodes, [&](const LoweredNode&) {
    const std::size_t at = n++;
    return at != members.front() && std::ranges::binary_search(members, at);
  });
}

}  // namespace

void group_reorders(Lowered& program, Device& device, const LateVariables& late) {
  for (const bool invariant : {true, false}) {
    std::vector<std::size_t> members;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const LoweredNode& node = program.nodes[n];
      if (node.invariant == invariant && is_member(program, node, late)) members.push_back(n);
    }
    merge(program, device, members);
  }
}

}  // namespace concord
