// Largest errors by rounding in fp32, by family of operators. Used by tolerance_of, which adds the effects of other
// precisions and of subnormal numbers.
#pragma once

#include <cstddef>

#include "concord/compare/tolerance/sized_node.hpp"

namespace concord {

/// The first table of tolerance.hpp, for result k.
[[nodiscard]] double rounding_of(const SizedNode& node, std::size_t k);

/// The operator itself, without an epilogue.
[[nodiscard]] const Operator* unfused(const Operator* op);
/// A matrix product or a convolution, without an epilogue.
[[nodiscard]] bool is_product(const Operator* op);
/// Products summed for one element of the result.
[[nodiscard]] double product_terms(const SizedNode& node);
/// The size of a factor: that of the largest numbers that are summed together, since after a few steps of training
/// those of the labels seen are far larger than the others.
[[nodiscard]] double factor_scale(const SizedNode& node, std::size_t input);

}  // namespace concord
