// Batches: the order in which compare feeds a data set.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "concord/data/dataset.hpp"

namespace concord {

/// The batches of a run, as the network takes them, in the order of data::permutation. The data set must outlive it.
class Batches {
 public:
  Batches(const Dataset& dataset, std::int64_t batch, std::uint64_t seed)
      : dataset_(dataset), batch_(batch), seed_(seed) {}

  [[nodiscard]] TensorSpec features() const;
  [[nodiscard]] TensorSpec labels() const;
  /// Features and labels of the next batch.
  [[nodiscard]] std::pair<Tensor, Tensor> next();

 private:
  [[nodiscard]] Shape with_batch(const Shape& sample) const;
  [[nodiscard]] std::int32_t next_row();

  const Dataset& dataset_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> order_;
  std::size_t position_ = 0;
};

}  // namespace concord
