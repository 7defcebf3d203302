// Dataset: checks, synthetic data, cuts.
#include "concord/data/dataset.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/utf8.hpp"

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

/// "features of data set 'x'", with the name of the column if it has one.
std::string description(const Dataset& dataset, std::string_view kind, const Column& column) {
  return column.name.empty() ? fmt::format("data set '{}': {}", dataset.name, kind)
                             : fmt::format("data set '{}': {} '{}'", dataset.name, kind, column.name);
}

void check_columns(const Dataset& dataset, std::string_view kind, const std::vector<Column>& columns) {
  const std::int64_t samples = dataset.size();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i].name;
    CONCORD_CHECK(is_utf8(name) && (i == 0 || !name.empty()), ArgumentError,
                  "data set '{}': column {} of its {} needs a name, in UTF-8", dataset.name, i, kind);
    const auto same = [&](const Column& other) { return other.name == name; };
    CONCORD_CHECK(std::find_if(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), same) ==
                      columns.begin() + static_cast<std::ptrdiff_t>(i),
                  ArgumentError, "data set '{}': two columns of its {} are named '{}'", dataset.name, kind, name);
    const Shape& shape = columns[i].values.shape();
    CONCORD_CHECK(shape.rank() >= 1 && shape[0] == samples, ShapeError, "{} have {} samples, expected {}",
                  description(dataset, kind, columns[i]), shape.rank() == 0 ? 1 : shape[0], samples);
  }
}

void check_labels(const Dataset& dataset, const Column& column, std::optional<std::int32_t> ignored) {
  const std::string what = description(dataset, "labels", column);
  CONCORD_CHECK(column.classes >= 0, ArgumentError, "{}: the number of classes must not be negative, got {}", what,
                column.classes);
  if (column.classes == 0) return;
  CONCORD_CHECK(column.values.dtype() == DType::i32, ArgumentError, "{}: f32 targets need 0 classes, got {}", what,
                column.classes);
  const auto values = column.values.values<std::int32_t>();
  const auto wrong =
      std::ranges::find_if(values, [&](std::int32_t v) { return (v < 0 || v >= column.classes) && v != ignored; });
  if (wrong == values.end()) return;
  const std::int64_t a_sample = column.values.elements() / dataset.size();
  throw ArgumentError(fmt::format("{}: label {} of sample {} is outside [0, {})", what, *wrong,
                                  (wrong - values.begin()) / a_sample, column.classes));
}

}  // namespace

TensorSpec Dataset::feature_spec() const { return sample_of(features.spec()); }

TensorSpec Dataset::label_spec() const { return sample_of(labels.spec()); }

std::vector<Column> Dataset::feature_columns() const {
  std::vector<Column> columns{{feature_name, features, 0, scale, shift}};
  columns.insert(columns.end(), more_features.begin(), more_features.end());
  return columns;
}

std::vector<Column> Dataset::label_columns() const {
  std::vector<Column> columns{{label_name, labels, classes}};
  columns.insert(columns.end(), more_labels.begin(), more_labels.end());
  return columns;
}

std::size_t Dataset::bytes() const {
  std::size_t sum = features.spec().bytes() + labels.spec().bytes();
  for (const auto* columns : {&more_features, &more_labels}) {
    for (const Column& column : *columns) sum += column.values.spec().bytes();
  }
  return sum;
}

namespace data {

bool labels_in_range(const Dataset& dataset) {
  return std::ranges::all_of(dataset.label_columns(), [](const Column& column) {
    if (column.classes <= 0 || column.values.dtype() != DType::i32) return true;
    return std::ranges::all_of(column.values.values<std::int32_t>(),
                               [&](std::int32_t v) { return v >= 0 && v < column.classes; });
  });
}

void check(const Dataset& dataset, std::span<const std::optional<std::int32_t>> ignored) {
  const std::vector<Column> features = dataset.feature_columns(), labels = dataset.label_columns();
  CONCORD_CHECK(!dataset.features.bytes().empty() && !dataset.labels.bytes().empty(), ArgumentError,
                "data set '{}' is empty: features {}, labels {}", dataset.name, dataset.features.spec().str(),
                dataset.labels.spec().str());
  for (const Column& column : features) {
    const DType type = column.values.dtype();
    CONCORD_CHECK(type == DType::u8 || type == DType::f32 || type == DType::i32, ShapeError,
                  "{} must be u8, f32 or i32, got {}", description(dataset, "features", column),
                  column.values.spec().str());
  }
  for (const Column& column : labels) {
    const DType type = column.values.dtype();
    CONCORD_CHECK(type == DType::i32 || type == DType::f32, ShapeError, "{} must be i32 or f32 [N, ...], got {}",
                  description(dataset, "labels", column), column.values.spec().str());
  }
  CONCORD_CHECK(dataset.features.shape().rank() >= 1 && dataset.labels.shape().rank() >= 1 &&
                    dataset.features.shape()[0] == dataset.labels.shape()[0],
                ShapeError, "data set '{}': features {} and labels {} do not have the same first dimension",
                dataset.name, dataset.features.spec().str(), dataset.labels.spec().str());
  CONCORD_CHECK(dataset.size() < std::int64_t{1} << 31, ArgumentError,
                "data set '{}': {} samples; the limit is 2^31 - 1", dataset.name, dataset.size());
  check_columns(dataset, "features", features);
  check_columns(dataset, "labels", labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check_labels(dataset, labels[i], i < ignored.size() ? ignored[i] : std::nullopt);
  }
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
  check(dataset, {&ignored, 1});
  if (!counts_classes) return dataset;
  dataset.classes = 0;
  for (const std::int32_t label : dataset.labels.values<std::int32_t>()) {
    if (label != ignored) dataset.classes = std::max(dataset.classes, label + 1);
  }
  return dataset;
}

Dataset from_columns(std::vector<Column> features, std::vector<Column> labels) {
  CONCORD_CHECK(!features.empty() && !labels.empty(), ArgumentError,
                "a data set needs a column of features and a column of labels, got {} and {}", features.size(),
                labels.size());
  Dataset dataset;
  dataset.name = "columns";
  dataset.features = features[0].values;
  dataset.feature_name = std::move(features[0].name);
  dataset.scale = features[0].scale;
  dataset.shift = features[0].shift;
  dataset.labels = labels[0].values;
  dataset.label_name = std::move(labels[0].name);
  dataset.classes = labels[0].classes;
  dataset.more_features.assign(std::next(features.begin()), features.end());
  dataset.more_labels.assign(std::next(labels.begin()), labels.end());
  check(dataset);
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
  for (auto* columns : {&part.more_features, &part.more_labels}) {
    for (Column& column : *columns) column.values = gather_rows(column.values, rows);
  }
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
