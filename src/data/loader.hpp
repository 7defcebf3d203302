// Loader: threads read samples ahead of time and put them into batches, for data that does not fit on the device. The
// trainer supplies staging memory, takes filled batches in order and starts their transfers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/loader_options.hpp"
#include "concord/data/samples.hpp"
#include "concord/device/device.hpp"

namespace concord::data {
struct LoaderState;
}

namespace CONCORD_PUBLIC concord {
namespace data {

/// A filled slot. The slot becomes free when the Batch is destroyed or assigned to, so keep the Batch until its
/// transfer is done. A Batch may outlive its loader.
class Batch {
 public:
  [[nodiscard]] std::int64_t number() const { return number_; }  // within the epoch, from 0
  [[nodiscard]] std::int64_t size() const { return size_; }      // samples; the last batch may be smaller, or larger
  [[nodiscard]] const StagingPtr& features() const { return features_; }
  [[nodiscard]] const StagingPtr& labels() const { return labels_; }
  [[nodiscard]] std::size_t feature_bytes() const { return feature_bytes_; }
  [[nodiscard]] std::size_t label_bytes() const { return label_bytes_; }

 private:
  friend class Loader;
  std::int64_t number_ = 0, size_ = 0;
  StagingPtr features_, labels_;
  std::size_t feature_bytes_ = 0, label_bytes_ = 0;
  std::shared_ptr<void> release_;  // its deleter frees the slot
};

/// Only one thread may use a Loader. The order and the bytes of the batches do not depend on the number of threads.
class Loader {
 public:
  /// Throws ArgumentError for a batch or a number of threads below 1, fewer than two slots, or a slot that is too
  /// small.
  Loader(SharedSamples samples, LoaderOptions options, std::vector<LoaderSlot> ring);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Stops the threads, also in the middle of an epoch.
  ~Loader();

  /// Starts an epoch over these rows, in this order. Abandons an unfinished epoch. To resume within an epoch, pass the
  /// rest of its order. Throws ArgumentError for a row outside the data set.
  void start(std::vector<std::int32_t> order, std::uint32_t epoch = 0);
  /// Waits for the next batch; returns nothing at the end of the epoch. Throws again what an augmentation or
  /// Samples::read threw, and ArgumentError for a label outside the classes; the epoch is then over. Throws
  /// ArgumentError if the caller holds every slot, because it would wait for ever.
  [[nodiscard]] std::optional<Batch> next();
  /// The number of batches in the current epoch.
  [[nodiscard]] std::int64_t batches() const;
  /// The number of different samples that were skipped so far (BadSamples::skip).
  [[nodiscard]] std::int64_t skipped() const;

 private:
  void stop();
  std::shared_ptr<LoaderState> state_;
};

}  // namespace data
}  // namespace concord
