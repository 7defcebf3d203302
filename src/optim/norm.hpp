// The Euclidean norm of values, for clipping and for rules that compare the sizes of weights and gradients.
#pragma once

#include <span>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// The Euclidean norm of all values together, rank 0. It keeps the range of fp32: squares neither over- nor underflow, and
/// where finite values have a norm beyond fp32 it is the largest number of fp32.
[[nodiscard]] Value global_norm(std::span<const Value> values);
[[nodiscard]] inline Value norm_of(Value value) { return global_norm({&value, 1}); }

}  // namespace optim
}  // namespace concord
