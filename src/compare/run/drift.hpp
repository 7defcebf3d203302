// Drift: how far the weights of two runs part, and runs that begin one ULP away, which show what rounding alone does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/variables.hpp"

namespace concord {

/// Names of the trainable f32 variables of a graph.
[[nodiscard]] std::vector<std::string> trained_weights(const Graph& graph);

/// The norm of the difference of these variables over the norm of `expected`; 0 where both are all zeros.
[[nodiscard]] double weight_distance(const Variables& weights, const Variables& expected,
                                     std::span<const std::string> names);

/// Moves each number of these variables to the next or the previous one; which, is drawn from Philox(seed, name).
void perturb(Variables& weights, std::span<const std::string> names, std::uint64_t seed);

/// The steps after which weights are compared: evenly apart, at most 128, and the last.
[[nodiscard]] bool is_drift_step(std::int64_t done, std::int64_t steps);

}  // namespace concord
