// How far formulas over elements may be off: by what they are proportional to, and updates by what they move. Used by
// tolerance_of.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// Of result k of a Pointwise or PointwiseGroup, or of AllFiniteWithNumbers, whose numbers are updates; `results` are
/// the right ones. u = 2^-24.
///   updates (optim::is_update)         32u · the largest |result| + 4e-5 · the most one moved
///   all others                         4e-5 · (the largest |result| + 0.01·pointwise_scale())
[[nodiscard]] double pointwise_tolerance(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                                         Magnitudes& magnitudes);

/// What result k of a Pointwise is made of, by the largest absolute values of its f32 inputs: the largest, or, of a
/// formula proportional to an input d, as gradients are, d·max(1, the largest other) where that is less.
[[nodiscard]] double pointwise_scale(const ReplayedNode& node, std::size_t k, Magnitudes& magnitudes);

/// Whether an element may change by far more than what f32 operands are rounded by, since it then takes another branch:
/// the slope of a clamp beside its limit. Comparisons of whole numbers, coordinates and constants are exact, as are
/// those of an operand with 0, because rounding keeps signs. Limits where the formula is continuous do not count.
[[nodiscard]] bool may_jump(const Expression& expression, std::span<const Tensor> inputs);

}  // namespace concord
