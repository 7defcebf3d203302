// Dataset: checks, synthetic data, cuts.
#include "concord/data/dataset.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"

namespace concord {
namespace {

// One element of an array of N.
TensorSpec sample_of(const TensorSpec& array) {
  const auto dims = array.shape.dims();
  CONCORD_CHECK(!dims.empty(), ArgumentError,
                "a data set has no samples: its features or labels are empty, or were moved from");
  return {array.dtype, Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end()))};
}

Tensor gather_rows(const Tensor& src, std::span<const std::int32_t> rows) {
  std::vector<std::int64_t> dims(src.shape().dims().begin(), src.shape().dims().end());
  dims[0] = static_cast<std::int64_t>(rows.size());
  Tensor dst(src.dtype(), Shape(std::move(dims)));
  const std::size_t bytes = sample_of(src.spec()).bytes();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = src.bytes().subspan(static_cast<std::size_t>(rows[i]) * bytes, bytes);
    std::ranges::copy(row, dst.bytes().begin() + static_cast<std::ptrdiff_t>(i * bytes));
  }
  return dst;
}

}  // namespace

TensorSpec Dataset::feature_spec() const { return sample_of(features.spec()); }

TensorSpec Dataset::label_spec() const { return sample_of(labels.spec()); }

namespace data {

bool labels_in_range(const Dataset& dataset) {
  if (dataset.classes <= 0 || dataset.labels.dtype() != DType::i32) return true;
  return std::ranges::all_of(dataset.labels.values<std::int32_t>(),
                             [&](std::int32_t v) { return v >= 0 && v < dataset.classes; });
}

void check(const Dataset& dataset, std::optional<std::int32_t> ignored) {
  const Tensor &features = dataset.features, &labels = dataset.labels;
  CONCORD_CHECK(!features.bytes().empty() && !labels.bytes().empty(), ArgumentError,
                "data set '{}' is empty: features {}, labels {}", dataset.name, features.spec().str(),
                labels.spec().str());
  const DType type = features.dtype();
  CONCORD_CHECK(type == DType::u8 || type == DType::f32 || type == DType::i32, ShapeError,
                "data set '{}': features must be u8, f32 or i32, got {}", dataset.name, features.spec().str());
  CONCORD_CHECK(labels.dtype() == DType::i32 || labels.dtype() == DType::f32, ShapeError,
                "data set '{}': labels must be i32 or f32 [N, ...], got {}", dataset.name, labels.spec().str());
  CONCORD_CHECK(features.shape().rank() >= 1 && labels.shape().rank() >= 1 && features.shape()[0] == labels.shape()[0],
                ShapeError, "data set '{}': features {} and labels {} do not have the same first dimension",
                dataset.name, features.spec().str(), labels.spec().str());
  CONCORD_CHECK(features.shape()[0] < std::int64_t{1} << 31, ArgumentError,
                "data set '{}': {} samples; the limit is 2^31 - 1", dataset.name, features.shape()[0]);
  CONCORD_CHECK(dataset.classes >= 0, ArgumentError,
                "data set '{}': the number of classes must not be negative, got {}", dataset.name, dataset.classes);
  if (dataset.classes == 0) return;
  CONCORD_CHECK(labels.dtype() == DType::i32, ArgumentError, "data set '{}': f32 targets need 0 classes, got {}",
                dataset.name, dataset.classes);
  const auto values = labels.values<std::int32_t>();
  const auto wrong =
      std::ranges::find_if(values, [&](std::int32_t v) { return (v < 0 || v >= dataset.classes) && v != ignored; });
  if (wrong == values.end()) return;
  const std::int64_t a_sample = labels.elements() / labels.shape()[0];
  throw ArgumentError(fmt::format("data set '{}': label {} of sample {} is outside [0, {})", dataset.name, *wrong,
                                  (wrong - values.begin()) / a_sample, dataset.classes));
}

void check_outputs(const Shape& outputs, const Shape& labels, int classes) {
  if (classes == 0) return;
  const auto dims = outputs.dims();
  std::int64_t most = 0;  // of the dimensions that may be the classes
  for (std::size_t axis = 1; axis < dims.size(); ++axis) {
    const auto before = dims.first(axis), after = dims.subspan(axis + 1);
    const auto places = labels.dims();
    const bool fits = places.size() + 1 == dims.size() && std::ranges::equal(before, places.first(axis)) &&
                      std::ranges::equal(after, places.subspan(axis));
    if (fits) most = std::max(most, dims[axis]);
  }
  CONCORD_CHECK(most > 0, ShapeError,
                "class labels {} need outputs with these dimensions and one more for the classes, got {}", labels.str(),
                outputs.str());
  CONCORD_CHECK(classes <= most, ArgumentError, "the data set has labels up to {}, but the network has {} outputs",
                classes - 1, most);
}

Dataset from_arrays(Tensor features, Tensor labels, int classes, std::optional<std::int32_t> ignored) {
  constexpr int kMostClasses = 1 << 24;
  const bool counts_classes = classes == 0 && labels.dtype() == DType::i32;
  Dataset dataset;
  dataset.name = "arrays";
  dataset.features = std::move(features);
  dataset.labels = std::move(labels);
  dataset.classes = counts_classes ? kMostClasses : classes;
  check(dataset, ignored);
  if (!counts_classes) return dataset;
  dataset.classes = 0;
  for (const std::int32_t label : dataset.labels.values<std::int32_t>()) {
    if (label != ignored) dataset.classes = std::max(dataset.classes, label + 1);
  }
  return dataset;
}

Dataset synthetic(const Shape& sample, int classes, std::int64_t n, std::uint64_t seed) {
  CONCORD_CHECK(classes > 0 && n > 0 && sample.elements() > 0, ArgumentError,
                "synthetic data: the numbers must be positive, got {} samples of shape {} in {} classes", n,
                sample.str(), classes);
  std::vector<std::int64_t> dims{n};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  Tensor features(DType::f32, Shape(std::move(dims)));
  Tensor labels(DType::i32, {n});
  const auto size = static_cast<std::uint64_t>(sample.elements());
  const auto signed_unit = [](std::uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-23f - 1.0f;  // exact: the same bits on every machine
  };

  PhiloxSequence noise(Philox(seed, philox_purpose("data.synthetic.noise")));
  const auto values = features.values<float>();
  const auto classes_of = labels.values<std::int32_t>();
  for (std::uint64_t row = 0; row < classes_of.size(); ++row) {
    const std::uint64_t label = row % static_cast<std::uint64_t>(classes);
    classes_of[row] = static_cast<std::int32_t>(label);
    PhiloxSequence mean(Philox(seed, philox_purpose("data.synthetic.mean"), static_cast<std::uint32_t>(label)));
    for (float& value : values.subspan(row * size, size)) {
      value = signed_unit(mean.next()) + signed_unit(noise.next());
    }
  }
  Dataset dataset = from_arrays(std::move(features), std::move(labels), classes);
  dataset.name = "synthetic";
  return dataset;
}

Dataset subset(const Dataset& dataset, std::span<const std::int32_t> rows) {
  CONCORD_CHECK(!rows.empty(), ArgumentError, "subset of {}: it needs at least one row", dataset.name);
  for (const std::int32_t row : rows) {
    CONCORD_CHECK(row >= 0 && row < dataset.size(), ArgumentError, "subset of {}: row {} is outside its {} samples",
                  dataset.name, row, dataset.size());
  }
  Dataset part = dataset;
  part.features = gather_rows(dataset.features, rows);
  part.labels = gather_rows(dataset.labels, rows);
  part.device_copies = std::make_shared<DeviceCopies>();  // other arrays, other copies
  return part;
}

Dataset slice(const Dataset& dataset, std::int64_t first, std::int64_t count) {
  CONCORD_CHECK(first >= 0 && count > 0 && count <= dataset.size() - first, ArgumentError,
                "slice of {}: {} samples from sample {} on are not within its {} samples", dataset.name, count, first,
                dataset.size());
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
  return subset(dataset, rows);
}

std::pair<Dataset, Dataset> split(const Dataset& dataset, std::int64_t count, std::uint64_t seed) {
  CONCORD_CHECK(count > 0 && count < dataset.size(), ArgumentError,
                "split of {}: a part needs at least one sample and must leave one, got {} of {}", dataset.name, count,
                dataset.size());
  std::vector<std::int32_t> order = permutation(dataset.size(), seed);
  const auto cut = order.begin() + count;
  std::sort(order.begin(), cut);
  std::sort(cut, order.end());
  return {subset(dataset, {cut, order.end()}), subset(dataset, {order.begin(), cut})};
}

std::vector<std::int32_t> permutation(std::int64_t n, std::uint64_t seed, std::uint32_t epoch) {
  CONCORD_CHECK(n >= 0 && n < (std::int64_t{1} << 31), ArgumentError,
                "permutation of {} elements: the number must be from 0 to 2^31 - 1", n);
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  PhiloxSequence words(Philox(seed, philox_purpose("data.permutation"), epoch));
  for (std::uint32_t i = static_cast<std::uint32_t>(n); i > 1; --i) {
    std::swap(order[i - 1], order[words.below(i)]);
  }
  return order;
}

}  // namespace data
}  // namespace concord
