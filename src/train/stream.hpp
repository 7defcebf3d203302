// Stream: feeds the inputs of programs from host memory, one batch ahead of the device. For data that does not fit on
// the device or is augmented on the host. Internal to the room.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/data/loader.hpp"
#include "concord/train/options.hpp"
#include "concord/train/source.hpp"

namespace concord::train {

class Stream {
 public:
  /// `samples` must outlive it. Batch and threads of `options` are set here.
  Stream(DevicePtr device, const Samples& samples, const EpochPlan& plan, data::LoaderOptions options);
  /// The samples of an epoch, or what is left of it.
  void start(std::vector<std::int32_t> order, std::int64_t epoch);
  /// Puts the next batch into those inputs that the program reads; the host does not wait for the copy, but for that of
  /// two batches ago.
  void next(Program& program);
  /// Seconds in which the device had nothing to do because `next` waited for samples: at most so many, because the
  /// device is looked at when they have come.
  [[nodiscard]] double seconds_waited() const { return seconds_waited_; }

 private:
  /// A column of a batch: the input of programs, and the bytes of one sample.
  struct Input {
    std::string name;
    std::size_t bytes;
  };
  /// Columns one after another, as data::LoaderSlot has them.
  struct Inputs {
    std::vector<Input> columns;
    [[nodiscard]] std::size_t bytes() const;  // of one sample
  };
  /// Copies a batch of `samples` to where the program reads it.
  void copy(const Buffer& from, const Inputs& inputs, std::int64_t samples, Program& program);

  /// A batch on its way: from pinned memory over the transfer queue to `features` and `labels`, then to the program.
  struct Slot {
    BufferPtr features, labels;
    EventPtr arrived, taken;
    std::optional<data::Batch> batch;
  };

  DevicePtr device_;
  Inputs features_, labels_;
  std::array<Slot, 2> slots_;
  std::size_t used_ = 0;
  double seconds_waited_ = 0;
  std::unique_ptr<data::Loader> loader_;
};

}  // namespace concord::train
