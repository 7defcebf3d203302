// Drift: the distance between the weights of two runs, and runs from weights moved by one ULP, which show the effect of
// rounding alone.
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

/// Moves each value of these variables to the next or the previous one. Philox(seed, name) chooses the direction.
void perturb(Variables& weights, std::span<const std::string> names, std::uint64_t seed);

/// The steps after which weights are compared: evenly apart, at most 128, and the last.
[[nodiscard]] bool is_drift_step(std::int64_t done, std::int64_t steps);

}  // namespace concord
