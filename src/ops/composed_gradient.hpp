// Gradients of fused gradient operators, made of other operators: so they have gradients themselves.
#pragma once

#include <functional>

#include "concord/graph/operator.hpp"

namespace concord::ops {

/// The outputs of an operator as compositions of its inputs.
using Composition = std::function<std::vector<Value>(const std::vector<Value>& inputs)>;

/// The gradient rule of an operator that computes what `compose` does: of each wanted input. The results have gradients
/// of any order, if the operators of the composition have.
[[nodiscard]] std::vector<Value> composed_gradient(const Node& node, std::span<const Value> diff_dst,
                                                   const std::vector<bool>& wanted, const Composition& compose);

}  // namespace concord::ops
