// Deviations: how far what a device made of an operator is from the reference. Used by OperatorChecks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// How far result k of the node is from `exact`, or else from expected[k]; `expected` is what the first device made of
/// it, from which the tolerance is. Its step and form are for the caller to fill in.
[[nodiscard]] Deviation deviation_of(const ReplayedNode& node, std::size_t k, std::span<const Tensor> expected,
                                     const std::optional<std::vector<double>>& exact, Precision precision,
                                     Magnitudes& magnitudes);

/// Keeps of each node and form the result that is farthest for its tolerance.
void keep_worst(std::vector<Deviation>& operators, const Deviation& deviation);

}  // namespace concord
