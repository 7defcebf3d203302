// The size of an operator's operands, without those that hardly count. Used by tolerance_of.
#pragma once

#include <cstddef>

#include "concord/compare/tolerance/sized_node.hpp"

namespace concord {

/// Softmax, and not its logarithm.
[[nodiscard]] bool is_softmax(const Operator* op);
/// The size of what result k is computed from: the largest f32 input. Not counted are masks of attention and logits
/// that weigh nothing, which may be far larger:
///   attention's result                the largest of q, k and v, or logarithm of a sum times v
///   its other results, its gradients  the largest input before the mask
///   cross entropy                     the largest target (at least 1), times the largest logit of a row (at least 1)
///   the gradient of logits beside it  the largest weight of a row, times the same
///   the gradient of softmax           the largest |diff|
[[nodiscard]] double operand_scale(const SizedNode& node, std::size_t k);

}  // namespace concord
