// Attention in files that write it out. Internal to the room.
#pragma once

#include "concord/onnx/call.hpp"

namespace concord::onnx {

/// weights·values as Concord's attention, where `weights` (…, T, S) are softmax(q·kᵀ·scale + mask) over the last axis,
/// of two or one batch axes, that this node alone reads. The scale may stand at q, at k or as a divisor; the mask is an
/// addition or a Where; a Where after the softmax may clear the rows that see no key. Numbers of at most -1e4 that are
/// constant hide as −∞ does. Key heads that were repeated are taken as they were. Returns an empty Value for anything
/// else, and where the mask depends on a parameter, which would get no gradient.
///
/// Unlike the composition, a row that sees no key gives zeros, not NaN.
[[nodiscard]] Value attention_of(const Call& call, const Value& weights, const Value& values);

}  // namespace concord::onnx
