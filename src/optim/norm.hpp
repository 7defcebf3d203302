// The Euclidean norm of values, for clipping and for optimizers that compare the norms of weights and gradients.
#pragma once

#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// The Euclidean norm of all values together, rank 0. Squares neither overflow nor underflow. A norm above the largest
/// fp32 number is that number.
[[nodiscard]] Value global_norm(std::span<const Value> values);
/// The same from the norm of each value, rank 0; bit for bit.
[[nodiscard]] Value norm_of_norms(std::vector<Value> norms);
[[nodiscard]] inline Value norm_of(Value value) { return global_norm({&value, 1}); }

}  // namespace optim
}  // namespace concord
