// The values that a program need not compute in every run: constants, the factors that a normalisation in evaluation
// computes from weights and statistics, and weights in the layout of their kernel, of which updates write some.
#include <algorithm>
#include <cstdint>
#include <set>

#include "concord/compile/lowered.hpp"

namespace concord {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 10;  // bytes of one computed result

/// Weights with factors in them, or weights in the layout of a kernel: to make them again in each run can take as long
/// as the kernel.
bool is_of_weights(const Lowered& program, const LoweredNode& node, const std::set<ValueId>& folded) {
  if (node.op) return node.is_folded;
  const ValueId source = program.root(node.inputs[0]);
  return program.value(source).kind == LoweredValue::Kind::variable || folded.contains(source);
}

}  // namespace

void find_invariants(Lowered& program, const LateVariables& late) {
  std::vector<bool> changes(program.values.size(), true);  // by root value
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const LoweredValue& value = program.values[v];
    changes[v] = value.kind != LoweredValue::Kind::variable || late_place(value, late) > 0;
  }
  std::vector<bool> assigned(program.values.size(), false), is_written(program.values.size(), false);
  for (const LoweredAssignment& assignment : program.assignments) {
    changes[static_cast<std::size_t>(program.root(assignment.variable))] = true;
    assigned[static_cast<std::size_t>(program.root(assignment.value))] = true;
    is_written[static_cast<std::size_t>(assignment.variable)] = true;
  }
  std::set<ValueId> folded;
  for (LoweredNode& node : program.nodes) {
    if (!node.kernel || is_all_reduce(node)) continue;
    if (is_written[static_cast<std::size_t>(node.outputs[0])]) {  // what reads it is no invariant
      node.invariant = true;
      continue;
    }
    if (node.is_folded) folded.insert(node.outputs[0]);
    const std::size_t largest = is_of_weights(program, node, folded) ? SIZE_MAX : kLargest;
    node.invariant =
        std::ranges::none_of(node.inputs,
                             [&](ValueId id) { return changes[static_cast<std::size_t>(program.root(id))]; }) &&
        std::ranges::none_of(node.outputs, [&](ValueId id) {
          return assigned[static_cast<std::size_t>(id)] || program.bytes(id) > largest;
        });
    if (!node.invariant) continue;
    for (const ValueId id : node.outputs) changes[static_cast<std::size_t>(id)] = false;
  }
}

}  // namespace concord
