// Loader: batches assembled ahead of time by threads, for data that is not kept on the device. The trainer hands over
// staging memory, takes filled batches in order and starts their transfers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/device/device.hpp"

namespace concord::data {
struct LoaderState;
}

namespace CONCORD_PUBLIC concord {
namespace data {

/// Which sample an augmentation works on. Random numbers drawn from Philox(seed, purpose, epoch) at indices that depend
/// on `row` are the same whatever the number of threads.
struct SampleInfo {
  std::int32_t row = 0;     // in the data set
  std::uint32_t epoch = 0;  // as given to `start`
  TensorSpec spec;          // of the features
};

/// Changes one sample's features in place. Called from several threads at once.
using Augmentation = std::function<void(std::span<std::byte> features, const SampleInfo& sample)>;

/// Staging for one batch: feature and label bytes of the largest one, or more.
struct LoaderSlot {
  StagingPtr features;
  StagingPtr labels;
};

struct LoaderOptions {
  std::int64_t batch = 64;
  int threads = 2;
  bool drop_last = false;   // leave out a last batch that is not full
  bool merge_last = false;  // or let the one before have its samples, up to 2·batch − 1
  Augmentation augmentation = {};
};

/// A filled slot. It goes back to the ring when the Batch is destroyed or assigned to: keep it until the transfer from
/// its staging has happened. May outlive its loader.
class Batch {
 public:
  [[nodiscard]] std::int64_t number() const { return number_; }  // within the epoch, from 0
  [[nodiscard]] std::int64_t size() const { return size_; }      // samples; the last batch may have fewer, or more
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

/// Used from one thread. The order of batches and their bytes do not depend on the number of threads.
class Loader {
 public:
  /// Throws ArgumentError for a batch or thread count below 1, fewer than two slots, or a slot that is too small.
  Loader(Dataset dataset, LoaderOptions options, std::vector<LoaderSlot> ring);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Stops the threads, mid-epoch too.
  ~Loader();

  /// Begins an epoch over these rows, in this order; an unfinished one is abandoned. To resume mid-epoch, hand over the
  /// rest of the order. Throws ArgumentError for a row outside the data set.
  void start(std::vector<std::int32_t> order, std::uint32_t epoch = 0);
  /// The next batch, waiting for it; nothing at the end of the epoch. Rethrows what an augmentation threw (the epoch is
  /// then over). Throws ArgumentError when the caller holds every slot, since that wait would have no end.
  [[nodiscard]] std::optional<Batch> next();
  /// Batches of the current epoch.
  [[nodiscard]] std::int64_t batches() const;

 private:
  void stop();
  std::shared_ptr<LoaderState> state_;
};

}  // namespace data
}  // namespace concord
