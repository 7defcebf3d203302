// Deviations: how far a device's result of an operator is from the reference. Used by OperatorChecks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compile/program.hpp"

namespace concord {

/// How far result k of the node is from `exact`, or from expected[k] if there is no `exact`. `expected` are the results
/// of the first device, or `exact` as f32; the tolerance depends on them. The caller sets the step and the form.
[[nodiscard]] Deviation deviation_of(const ReplayedNode& node, std::size_t k, std::span<const Tensor> expected,
                                     const std::optional<std::vector<double>>& exact, Precision precision,
                                     Magnitudes& magnitudes);

/// Whether a result of the case is farther from the reference than its tolerance.
[[nodiscard]] bool diverges(const OperatorCase& operator_case);

/// Keeps, for each node and form, the result with the largest error relative to its tolerance.
void keep_worst(std::vector<Deviation>& operators, const Deviation& deviation);

}  // namespace concord
