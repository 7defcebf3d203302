// Reverse-mode differentiation on a graph: adds the nodes of the backward pass.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// Returns d(loss)/d(wrt[i]) for each i, built with the gradient rules of the operators. `loss` is f32 with one
/// element. The gradient of a value that the loss does not depend on is zeros. Throws NotSupported for a value within a
/// function that was joined of several, such as sigmoid(x) within x·sigmoid(x) (Node::joined). The nodes are named
/// "grad/<forward node>/<operator>".
[[nodiscard]] std::vector<Value> gradient(Value loss, std::span<const Value> wrt);
[[nodiscard]] std::vector<Value> gradient(Value loss, std::initializer_list<Value> wrt);

}  // namespace concord
