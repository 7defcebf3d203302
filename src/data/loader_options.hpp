// What a Loader does with samples, and where it puts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/data/samples.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// The sample that an augmentation changes. Draw random numbers only from `row` and `epoch`; then they do not depend on
/// the number of threads.
struct SampleInfo {
  std::int32_t row = 0;     // row in the data set
  std::uint32_t epoch = 0;  // the epoch given to `start`
  TensorSpec spec;          // of one sample's features; of several columns, the first
};

/// Changes the features of one sample in place; of several columns, the first. Several threads call it at the same
/// time.
using Augmentation = std::function<void(std::span<std::byte> features, const SampleInfo& sample)>;

/// Staging memory for one batch, large enough for the features and labels of the largest one. A batch has its columns
/// one after another without gaps: all rows of the first column, then all of the second.
struct LoaderSlot {
  StagingPtr features;
  StagingPtr labels;
};

struct LoaderOptions {
  std::int64_t batch = 64;
  int threads = 2;
  std::uint64_t seed = 0;   // of SampleRandom
  bool drop_last = false;   // leaves out a last batch that is not full
  bool merge_last = false;  // or adds its samples to the batch before, up to 2·batch − 1
  Augmentation augmentation = {};
  BadSamples bad_samples = BadSamples::fail;
  /// For who leaves damaged samples out afterwards (BadSamples::skip): told the row of each one once, by one thread at
  /// a time. Warnings then say that it is left out.
  std::function<void(std::int32_t row)> left_out = {};
  /// For each column of labels, a label that may be outside the classes.
  std::vector<std::optional<std::int32_t>> ignored = {};
};

}  // namespace data
}  // namespace concord
