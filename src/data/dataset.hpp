// Dataset: Samples in host memory, and functions that select parts of them. The trainer reads a Dataset or copies it to
// the device. data/files.hpp has the functions that read one from files.
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
#include "concord/data/samples.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// The copies of a data set on devices. Several trainings share one upload. The trainer fills it.
struct DeviceCopies {
  struct Copy {
    DevicePtr device;
    std::vector<Tensor> sources;     // the uploaded arrays: columns of features, then of labels
    std::vector<BufferPtr> buffers;  // one for each
  };
  std::mutex mutex;
  std::vector<Copy> copies;
  std::size_t uploaded_bytes = 0;  // of all uploads so far
};

/// One column of a data set: a value for each sample, such as an image, a mask or a target.
struct Column {
  std::string name;  // the input or output of the network that it belongs to; empty: by its position
  Tensor values;     // [N, …], of the types of Dataset::features or Dataset::labels
  int classes = 0;   // of labels, as Dataset::classes
  float scale = 1.0f / 255.0f, shift = 0.0f;     // of u8 features, as in Dataset
  std::vector<float> mean = {}, deviation = {};  // of u8 images, as in ColumnSpec
  /// What one sample has of it.
  [[nodiscard]] ColumnSpec spec() const;
};

/// N samples with labels. Copies share the arrays, which must not change once a trainer has used them. A network with
/// several inputs or outputs takes further columns: `feature_name` and `label_name` name the first ones,
/// `more_features` and `more_labels` hold the others (data::from_columns).
struct Dataset : Samples {
  /// u8 or f32 [N, …] (images are [N, C, H, W]), or i32 [N, …], such as indices of words or characters [N, T].
  Tensor features;
  /// Class indices i32 [N, …]: [N] for one class per sample, [N, T] for one per position of a sequence, [N, H, W] for
  /// one per pixel. Each is in [0, classes), or is the index that the loss ignores; with `classes` 0 they are not
  /// checked. Or targets f32 [N, …]; then `classes` is 0.
  Tensor labels;
  int classes = 0;
  /// A u8 feature u is read as u·scale + shift. Features of other types are used unchanged.
  float scale = 1.0f / 255.0f;
  float shift = 0.0f;
  std::vector<float> mean = {}, deviation = {};  // of u8 images, as in ColumnSpec
  std::string feature_name = {}, label_name = {};
  std::vector<Column> more_features = {}, more_labels = {};
  /// Copies of this Dataset share it; the last one frees it.
  std::shared_ptr<DeviceCopies> device_copies = std::make_shared<DeviceCopies>();

  [[nodiscard]] std::int64_t size() const override { return features.shape()[0]; }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override;
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override;
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns, const SampleRandom& random) const override;
  [[nodiscard]] std::optional<std::int32_t> class_of(std::int64_t row) const override;
  /// The type and shape of one sample: its features, and its label (rank 0 for one class index).
  [[nodiscard]] TensorSpec feature_spec() const;
  [[nodiscard]] TensorSpec label_spec() const;
  /// All columns, in order: `features`, then `more_features`; `labels`, then `more_labels`.
  [[nodiscard]] std::vector<Column> feature_columns() const;
  [[nodiscard]] std::vector<Column> label_columns() const;
  /// The bytes of all columns: the device memory that the data set needs.
  [[nodiscard]] std::size_t bytes() const;
};

namespace data {

/// Checks a set. Throws ShapeError if types or lengths do not match the description of Samples or Dataset. Throws
/// ArgumentError for an empty set, for two columns of one name, for a further column without a name, and for the first
/// label outside [0, classes). Labels equal to `ignored` of their column may be outside; columns that `ignored` leaves
/// out ignore no label. Labels of samples that are not in memory are checked when a Loader reads them.
void check(const Samples& samples, std::span<const std::optional<std::int32_t>> ignored = {});
/// Returns whether all class labels in memory are in [0, classes).
[[nodiscard]] bool labels_in_range(const Samples& samples);

/// Checks that `outputs` has the dimensions of `labels` and one more with at least `classes` entries, as in outputs (N,
/// classes) and labels (N). Checks nothing if `classes` is 0. Throws ShapeError, and ArgumentError if there are fewer
/// entries.
void check_outputs(const Shape& outputs, const Shape& labels, int classes);

/// Makes a data set of two arrays and checks it. With i32 labels, `classes` 0 means the largest label + 1; labels equal
/// to `ignored` do not count. Throws the errors of check().
[[nodiscard]] Dataset from_arrays(Tensor features, Tensor labels, int classes = 0,
                                  std::optional<std::int32_t> ignored = {});

/// Makes a data set of named columns and checks it: at least one of features and one of labels. With i32 labels,
/// `classes` 0 means that they are not class indices. Throws the errors of check().
[[nodiscard]] Dataset from_columns(std::vector<Column> features, std::vector<Column> labels);

/// Makes n samples f32 of the shape `sample` that a network can learn. Sample i has the label i mod classes. Its
/// features are the mean of its class, uniform in [-1, 1), plus noise, uniform in [-1, 1). The result depends only on
/// the arguments.
[[nodiscard]] Dataset synthetic(const Shape& sample, int classes, std::int64_t n, std::uint64_t seed = 0);

/// Copies the given rows, in their order. Throws ArgumentError for a row outside the set, or for no rows.
[[nodiscard]] Dataset subset(const Dataset& dataset, std::span<const std::int32_t> rows);

/// Copies the rows [first, first + count).
[[nodiscard]] Dataset slice(const Dataset& dataset, std::int64_t first, std::int64_t count);

/// Splits off `count` random samples, for validation. Returns {rest, part}. 0 < count < size.
[[nodiscard]] std::pair<Dataset, Dataset> split(const Dataset& dataset, std::int64_t count, std::uint64_t seed = 0);

/// Returns a random order of 0 … n-1, the same on every machine: Fisher–Yates shuffle with Philox(seed,
/// "data.permutation", epoch). n < 2^31.
[[nodiscard]] std::vector<std::int32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint32_t epoch = 0);

}  // namespace data
}  // namespace concord
