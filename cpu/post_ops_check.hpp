// A chain of oneDNN's post-operations is held against plain loops before it is used: what one implementation computes
// right another does not (onednn_faults.hpp). Used by epilogue.
#pragma once

#include "epilogue.hpp"

namespace concord::cpu {

/// Whether the kernel that oneDNN has for this request computes the epilogue right. Kernels are told apart by
/// implementation, kind and rank of the product, groups, precision and the chain: the algorithms in their order, each
/// with an operand of the whole result or one number a channel. The first kernel of a kind runs once on drawn numbers,
/// with one image or few rows where that takes the same implementation; what was found is kept for the process. A
/// warning tells of a chain that is wrong. Kernels of our own are right.
[[nodiscard]] bool is_right(const Operator& op, const Epilogue& epilogue, const KernelRequest& request);

}  // namespace concord::cpu
