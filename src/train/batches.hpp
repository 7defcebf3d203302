// Batches: the samples of a fit, in the order of each epoch: on the device, or streamed to it. Used by fit.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "concord/train/state.hpp"
#include "concord/train/stream.hpp"

namespace concord::train {

/// Of this rank's batches, where there are several ranks. All arguments of the constructor must outlive it.
class Batches {
 public:
  /// Puts the data set on the device if that is possible.
  Batches(TrainerState& state, const Samples& data, const FitOptions& options, std::string role);

  [[nodiscard]] const Source& source() const { return source_; }
  [[nodiscard]] bool are_streamed() const { return !source_.is_resident(); }
  /// Makes the stream, if there is one. After the programs are compiled: it takes memory, too.
  void open(const EpochPlan& plan);
  /// Starts an epoch with `order`, the samples of the whole epoch in its plan; the first `done` batches are left out.
  void begin_epoch(std::vector<std::int32_t> order, std::int64_t done);
  /// Puts the next batch into the inputs of the program, if it is streamed.
  void next(Program& program) {
    if (stream_) stream_->next(program);
  }
  /// Seconds in which the device has waited for streamed samples.
  [[nodiscard]] double seconds_waited() const { return stream_ ? stream_->seconds_waited() : 0; }

 private:
  [[nodiscard]] Source make_source();

  TrainerState& state_;
  const Samples& data_;
  const FitOptions& options_;
  const std::string role_;
  DrawChanges draw_changes_;  // of images on the device
  Source source_;
  EpochPlan plan_;
  std::optional<Stream> stream_;
};

}  // namespace concord::train
