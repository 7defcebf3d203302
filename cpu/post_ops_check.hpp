// Compares a chain of oneDNN's post-operations with plain loops before it is used, because some implementations compute
// a chain wrong that others compute right (onednn_faults.hpp). Used by epilogue.
#pragma once

#include "epilogue.hpp"

namespace concord::cpu {

/// Whether oneDNN's kernel for this request computes the epilogue right. Kernels differ by implementation, kind and
/// rank of the product, the axes along which its result has several elements, groups, precision and chain: the
/// algorithms in their order, each with an operand of the size of the result or with one number for each channel. The
/// first kernel of a kind runs once on random numbers, with two images or few rows if oneDNN uses the same
/// implementation for these. The process remembers the answer. A wrong chain is logged. Our own kernels count as right.
[[nodiscard]] bool is_right(const Operator& op, const Epilogue& epilogue, const KernelRequest& request);

}  // namespace concord::cpu
