// The sums of a loss or a metric that programs keep on the device: their names, and the values computed from them.
// Internal to the room.
#pragma once

#include <span>
#include <string>

#include "concord/ops/loss_terms.hpp"

namespace concord::train {

/// The sums that the programs keep on the device of term `term` of the loss, f32 [1]: of the epoch so far, or of an
/// evaluation. A term that is a mean counts by its samples; a weighted one has its weights summed beside it.
[[nodiscard]] std::string loss_sum_name(const std::string& role, std::size_t term);
[[nodiscard]] std::string loss_weight_name(const std::string& role, std::size_t term);
/// What stands for the role in the names of a metric's sums.
[[nodiscard]] std::string role_of_metric(const std::string& name);
inline constexpr const char* kEvalLabels = "eval.labels";  // labels that are not ignored, as a count
// Counts, f32 [2] (see Hits).
inline constexpr const char* kEvalFirst = "eval.first";     // labels that came first
inline constexpr const char* kEvalAmongK = "eval.among_k";  // or among the k first

/// The loss of all batches as one, of so many samples, by the sums of its terms and the weights of the weighted ones.
[[nodiscard]] double joined_loss(std::span<const LossTerm::Kind> terms, std::span<const double> sums,
                                 std::span<const double> weights, double samples);

}  // namespace concord::train
