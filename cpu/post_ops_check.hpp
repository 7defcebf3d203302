// A chain of oneDNN's post-operations is held against plain loops before it is used: what one version computes right
// another does not (onednn_faults.hpp). Used by epilogue.
#pragma once

#include <string_view>

#include "epilogue.hpp"

namespace concord::cpu {

enum class Product : std::uint8_t { matmul, convolution };

/// Whether oneDNN computes this chain right behind a product of that kind: the algorithms in their order, each with an
/// operand of the whole result (`is_whole(operand)`) or one number a channel. Found with a small product at the first
/// call for a chain (about a millisecond) and kept for the process; a warning tells of one that is wrong.
[[nodiscard]] bool is_right(Product product, const Epilogue& epilogue,
                            const std::function<bool(int operand)>& is_whole);

}  // namespace concord::cpu
