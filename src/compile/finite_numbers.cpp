// Joining of the check whether gradients are finite with the counters of a training, which wait for it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "concord/compile/rearranged.hpp"
#include "concord/ops/all_finite.hpp"

namespace concord {
namespace {

/// The formulas of single numbers that read `finite` with it as input 0, and their other operands.
struct Numbers {
  ops::Pointwise formulas;
  std::vector<ValueId> others;
};

std::optional<Numbers> numbers_of(const Lowered& program, const LoweredNode& node, ValueId finite) {
  const auto* op = as_pointwise(node);
  if (op == nullptr || op->expression().uses_coordinates()) return {};
  const auto is_single = [&](ValueId id) { return program.value(id).spec.shape == Shape{}; };
  if (!std::ranges::all_of(node.inputs, is_single) || !std::ranges::all_of(node.outputs, is_single)) return {};
  auto [expression, others] = with_first(node, *op, finite);
  return Numbers{{std::move(expression), op->types(), std::string(op->name())}, std::move(others)};
}

/// The first node that reads `finite`; nothing if no node does.
std::optional<std::size_t> first_reader(const Lowered& program, std::size_t check, ValueId finite) {
  for (std::size_t n = check + 1; n < program.nodes.size(); ++n) {
    if (std::ranges::find(program.nodes[n].inputs, finite) != program.nodes[n].inputs.end()) return n;
  }
  return {};
}

}  // namespace

void join_finite_numbers(Lowered& program, const Device& device) {
  if (!device.has_joined_operators()) return;
  for (std::size_t n = 0; n < program.nodes.size();) {
    const std::size_t check = n++;
    if (dynamic_cast<const ops::AllFinite*>(program.nodes[check].op.get()) == nullptr) continue;
    LoweredNode joined = program.nodes[check];
    const std::optional<std::size_t> reader = first_reader(program, check, joined.outputs[0]);
    if (!reader) continue;
    const LoweredNode& node = program.nodes[*reader];
    std::optional<Numbers> numbers = numbers_of(program, node, joined.outputs[0]);
    if (!numbers) continue;
    joined.op = std::make_shared<const ops::AllFiniteWithNumbers>(
        joined.inputs.size(), std::move(numbers->formulas), fmt::format("{}+{}", joined.op->name(), node.op->name()));
    joined.inputs.insert(joined.inputs.end(), numbers->others.begin(), numbers->others.end());
    joined.outputs.insert(joined.outputs.end(), node.outputs.begin(), node.outputs.end());
    program.nodes[*reader] = std::move(joined);
    program.nodes.erase(program.nodes.begin() + static_cast<std::ptrdiff_t>(check));
    n = check;
  }
}

}  // namespace concord
