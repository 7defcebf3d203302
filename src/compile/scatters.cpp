// Joining of the sum of rows by index with the addition of its result to another tensor.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "concord/compile/rearranged.hpp"
#include "concord/ops/gather.hpp"

namespace concord {
namespace {

bool is_sum_of_two(const Expression& expression) {
  using F = ScalarFunction;
  const std::span<const Expression::Instruction> code = expression.code();
  return expression.inputs() == 2 && code.size() == 3 && code[0].function == F::input && code[1].function == F::input &&
         code[2].function == F::add && expression.results()[0] == 2;
}

/// The other operand where the node adds the value and nothing else.
std::optional<ValueId> added_to(const Lowered& program, const LoweredNode& node, ValueId id) {
  const auto* const pointwise = as_pointwise(node);
  if (pointwise == nullptr || node.outputs.size() != 1 || node.inputs.size() != 2) return {};
  if (!is_sum_of_two(pointwise->expression())) return {};
  const ValueId other = node.inputs[node.inputs[0] == id ? 1 : 0];
  const bool is_same = program.value(other).spec == program.value(id).spec && other != id;
  return is_same ? std::optional(other) : std::nullopt;
}

}  // namespace

void join_scatters(Lowered& program, const Device& device) {
  if (!device.has_joined_operators()) return;
  std::vector<int> readers(program.values.size(), 0);
  std::vector<std::size_t> reader(program.values.size(), 0);  // the last node that reads a value
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    for (const ValueId id : program.nodes[n].inputs) {
      ++readers[static_cast<std::size_t>(id)];
      reader[static_cast<std::size_t>(id)] = n;
    }
  }
  for (const LoweredAssignment& assignment : program.assignments) ++readers[static_cast<std::size_t>(assignment.value)];
  std::vector<bool> gone(program.nodes.size(), false);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const LoweredNode& scatter = program.nodes[n];
    const bool is_scatter = dynamic_cast<const ops::ScatterAdd*>(scatter.op.get()) != nullptr;
    if (!is_scatter || scatter.inputs.size() > ops::ScatterAdd::kBase) continue;
    const ValueId sums = scatter.outputs[0];
    if (readers[static_cast<std::size_t>(sums)] != 1 || program.value(sums).keep) continue;
    LoweredNode& addition = program.nodes[reader[static_cast<std::size_t>(sums)]];
    const std::optional<ValueId> base = added_to(program, addition, sums);
    if (!base) continue;
    addition.op = scatter.op;
    addition.inputs = {scatter.inputs[0], scatter.inputs[1], *base};
    gone[n] = true;
  }
  std::size_t n = 0;
  std::erase_if(program.nodes, [&](const LoweredNode&) { return gone[n++]; });
}

}  // namespace concord
