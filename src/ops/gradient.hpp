// Reverse-mode differentiation at graph level: adds the nodes of the backward pass. Lives beside the operators
// because summing two gradients is one.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// d(loss)/d(wrt[i]) for each i, built from the operators' gradient rules; `loss` is f32 with one element. A value the
/// loss does not depend on gets zeros. The nodes are named "grad/<forward node>/<operator>".
[[nodiscard]] std::vector<Value> gradient(Value loss, std::span<const Value> wrt);
[[nodiscard]] std::vector<Value> gradient(Value loss, std::initializer_list<Value> wrt);

}  // namespace concord
