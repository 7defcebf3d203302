// Operators with a prologue as the operators that read its result. Used by references and tolerances.
#pragma once

#include <optional>

#include "concord/compile/program.hpp"

namespace concord::float64 {

/// The node without its prologue, whose result is its first input. Nothing for other operators.
[[nodiscard]] std::optional<ReplayedNode> without_prologue(const ReplayedNode& node);

}  // namespace concord::float64
