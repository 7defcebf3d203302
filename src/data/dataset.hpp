// Dataset: samples and their labels in host memory, and what can be cut from one. The trainer reads it, or puts it on
// the device whole; the functions that fill one from files are in data/files.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/error.hpp"
#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// What devices hold of a data set, so that any number of trainings upload it once. Filled by the trainer.
struct DeviceCopies {
  struct Copy {
    DevicePtr device;
    Tensor features_source, labels_source;  // the arrays that were uploaded
    BufferPtr features, labels;
  };
  std::mutex mutex;
  std::vector<Copy> copies;
};

/// N samples. Copies share the arrays, which must not change once a trainer has used them.
struct Dataset {
  std::string name;
  Tensor features;  // u8 or f32 [N, …], images are [N, C, H, W]; or i32 [N, T], numbers of words or characters
  /// i32 [N], or [N, T] for a class at every place of a sequence, each in [0, classes) or what the loss ignores; or f32
  /// targets [N, …], then classes is 0.
  Tensor labels;
  int classes = 0;
  std::vector<std::string> class_names;  // empty, or one a class
  /// A u8 feature stands for the number u8·scale + shift; others are used as they are.
  float scale = 1.0f / 255.0f;
  float shift = 0.0f;
  /// Shared by copies and freed with the last of them.
  std::shared_ptr<DeviceCopies> device_copies = std::make_shared<DeviceCopies>();

  [[nodiscard]] std::int64_t size() const { return features.shape()[0]; }
  /// Type and shape of one sample's features, and of its label (rank 0 for a class index).
  [[nodiscard]] TensorSpec feature_spec() const;
  [[nodiscard]] TensorSpec label_spec() const;
  /// Bytes of both arrays: what it takes to keep the data set on a device.
  [[nodiscard]] std::size_t bytes() const { return features.spec().bytes() + labels.spec().bytes(); }
};

namespace data {

/// Throws ShapeError when types or lengths do not fit (see Dataset), ArgumentError naming the first label outside
/// [0, classes) or for an empty set. Labels that are `ignored`, by the loss, may be outside.
void check(const Dataset& dataset, std::optional<std::int32_t> ignored = {});
/// Whether all labels are in [0, classes), or there are no classes.
[[nodiscard]] bool labels_in_range(const Dataset& dataset);

/// Whether `outputs` has a number for each of so many classes, and the labels its other dimensions; 0 classes fit any.
/// Throws ShapeError and ArgumentError.
void check_outputs(const Shape& outputs, const Shape& labels, int classes);

/// Checks and joins two arrays. `classes` 0 with i32 labels takes the largest label + 1, but for those that are
/// `ignored` by the loss. Throws what check() throws.
[[nodiscard]] Dataset from_arrays(Tensor features, Tensor labels, int classes = 0,
                                  std::optional<std::int32_t> ignored = {});

/// n random samples of the shape `sample`, f32, label i mod classes; the features are a mean that belongs to the class,
/// uniform in [-1, 1), plus noise uniform in [-1, 1): a network can learn them. A function of the arguments alone.
[[nodiscard]] Dataset synthetic(const Shape& sample, int classes, std::int64_t n, std::uint64_t seed = 0);

/// Copies of the given rows, in their order. Throws ArgumentError for a row outside the set or no row at all.
[[nodiscard]] Dataset subset(const Dataset& dataset, std::span<const std::int32_t> rows);

/// Rows [first, first + count).
[[nodiscard]] Dataset slice(const Dataset& dataset, std::int64_t first, std::int64_t count);

/// A random part of `count` samples and the rest, for validation: {rest, part}. 0 < count < size.
[[nodiscard]] std::pair<Dataset, Dataset> split(const Dataset& dataset, std::int64_t count, std::uint64_t seed = 0);

/// A random order of 0 … n-1, the same on every machine: Fisher and Yates over Philox(seed, "data.permutation", epoch).
/// n < 2^31.
[[nodiscard]] std::vector<std::int32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint32_t epoch = 0);

}  // namespace data
}  // namespace concord
