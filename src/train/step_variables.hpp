// StepVariables: the numbers that the steps of a fit read and write on the device: the learning rate, whether a group
// of accumulated batches ends, the place in the epoch's order, sums of losses, random numbers. Used by fit.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/variables.hpp"
#include "concord/ops/loss_terms.hpp"

namespace concord::train {

/// The random state of the first batch of an epoch, i32 [4]: a stream of its own for each epoch. Its words stay below
/// 2^24, where they are exact as numbers. Word 2 counts the batches.
[[nodiscard]] Tensor random_state_of(std::uint64_t seed, std::int64_t epoch, std::int64_t batch);

class StepVariables {
 public:
  /// Of the programs of this role.
  StepVariables(VariablesPtr variables, std::string role) : variables_(std::move(variables)), role_(std::move(role)) {}

  /// The start of an epoch: the first batch, no losses, and the random numbers of the epoch.
  void restart(std::span<const LossTerm::Kind> terms, std::uint64_t seed, std::int64_t epoch);
  /// Where a rank of several stands: its own batches of the epoch that are done, and the number of its next run among
  /// those of all ranks, by which it draws its random numbers.
  void place_rank(std::int64_t own_batches, std::int64_t next_run);
  /// Where a stage of a network stands: the cursor counts updates from here on, and the sums of the loss go on from
  /// what they are.
  void place_stage(std::span<const LossTerm::Kind> terms);
  /// For a rank whose next run is not the one that the device expects. After place_rank.
  void place_run(std::int64_t next_run);
  /// The learning rate of the next step. Written where it changes.
  void set_rate(float rate);
  [[nodiscard]] float rate() const { return rate_; }
  /// Whether the next step ends a group of accumulated batches.
  void set_flush(bool flush);

  // What the steps have written; each waits for them.
  /// False after a step whose loss or gradient was not finite; it was not applied.
  [[nodiscard]] bool are_finite() const;
  /// The batches of the epoch that were applied; of a stage, the updates since place_stage.
  [[nodiscard]] std::int64_t batches_done() const;
  /// The sums of the loss's terms in the epoch so far, each with its weight behind it if it has one.
  [[nodiscard]] std::vector<float> counts(std::span<const LossTerm::Kind> terms) const;
  /// The loss of the epoch so far, of so many samples.
  [[nodiscard]] double loss(std::span<const LossTerm::Kind> terms, std::int64_t samples) const;

 private:
  VariablesPtr variables_;
  std::string role_;
  float rate_ = NAN;    // on the device
  Tensor random_ = {};  // the random state of this rank; empty if there is none
  std::optional<bool> flush_;
};

}  // namespace concord::train
