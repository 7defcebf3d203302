// Batches: the order in which compare feeds a data set.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/compare/run/training_step.hpp"
#include "concord/data/samples.hpp"
#include "concord/train/source.hpp"

namespace concord {

/// The batches of a run, as the network takes them, in the order of data::permutation. The data set must outlive it.
class Batches {
 public:
  Batches(const Samples& dataset, std::int64_t batch, std::uint64_t seed)
      : dataset_(dataset), batch_(batch), seed_(seed) {}

  /// The columns as a TrainingStep has them: features u8 are decoded to f32.
  [[nodiscard]] train::Source source() const;
  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] Batch next();

 private:
  [[nodiscard]] std::int32_t next_row();

  const Samples& dataset_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> order_;
  std::size_t position_ = 0;
};

}  // namespace concord
