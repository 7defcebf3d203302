// What the passes need that make one operator of several.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {

/// The formulas of a pointwise operator with one of its operands as input 0. The others follow in order.
struct Rearranged {
  Expression expression;
  std::vector<ValueId> others;
};
[[nodiscard]] Rearranged with_first(const LoweredNode& node, const ops::Pointwise& pointwise, ValueId first);

/// The operator of the node as a pointwise one; null for others.
[[nodiscard]] inline const ops::Pointwise* as_pointwise(const LoweredNode& node) {
  return dynamic_cast<const ops::Pointwise*>(node.op.get());
}

/// One node (ops::OperatorGroup) of those at these places, which have one output each, where the last of them stands.
/// It has no kernel. `label` says what they are.
[[nodiscard]] LoweredNode merged_node(const Lowered& program, std::span<const std::size_t> places,
                                      std::string_view label);

/// "first+second", cut where it gets long.
[[nodiscard]] std::string joined_label(std::string_view first, std::string_view second);

}  // namespace concord
