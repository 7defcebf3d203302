// The Euclidean norm of values, for clipping and for rules that compare the sizes of weights and gradients.
#pragma once

#include <span>

#include "concord/graph/graph.hpp"

namespace concord::optim {

/// The Euclidean norm of all values together, rank 0.
[[nodiscard]] Value global_norm(std::span<const Value> values);
[[nodiscard]] inline Value norm_of(Value value) { return global_norm({&value, 1}); }

}  // namespace concord::optim
