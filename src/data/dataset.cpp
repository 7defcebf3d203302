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

std::vector<ColumnSpec> specs_of(const std::vector<Column>& columns) {
  std::vector<ColumnSpec> specs;
  for (const Column& column : columns) specs.push_back(column.spec());
  return specs;
}

}  // namespace

ColumnSpec Column::spec() const { return {name, sample_of(values.spec()), scale, shift, classes, mean, deviation}; }

TensorSpec Dataset::feature_spec() const { return sample_of(features.spec()); }

TensorSpec Dataset::label_spec() const { return sample_of(labels.spec()); }

std::vector<Column> Dataset::feature_columns() const {
  std::vector<Column> columns{{feature_name, features, 0, scale, shift, mean, deviation}};
  columns.insert(columns.end(), more_features.begin(), more_features.end());
  return columns;
}

std::vector<Column> Dataset::label_columns() const {
  std::vector<Column> columns{{label_name, labels, classes}};
  columns.insert(columns.end(), more_labels.begin(), more_labels.end());
  return columns;
}

std::vector<ColumnSpec> Dataset::feature_specs() const { return specs_of(feature_columns()); }

std::vector<ColumnSpec> Dataset::label_specs() const {
  if (labels.bytes().empty()) return {};  // a data set to predict
  return specs_of(label_columns());
}

void Dataset::read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                   const SampleRandom& /*random*/) const {
  const auto copy = [&](const Tensor& values, std::size_t at) {
    const std::size_t bytes = columns[at].size();
    std::ranges::copy(values.bytes().subspan(static_cast<std::size_t>(row) * bytes, bytes), columns[at].begin());
  };
  std::size_t at = 0;
  copy(features, at++);
  for (const Column& column : more_features) copy(column.values, at++);
  if (at == columns.size()) return;  // without labels
  copy(labels, at++);
  for (const Column& column : more_labels) copy(column.values, at++);
}

std::optional<std::int32_t> Dataset::class_of(std::int64_t row) const {
  if (classes == 0 || labels.shape().rank() != 1) return std::nullopt;
  return labels.values<std::int32_t>()[static_cast<std::size_t>(row)];
}

std::size_t Dataset::bytes() const {
  std::size_t sum = features.spec().bytes() + labels.spec().bytes();
  for (const auto* columns : {&more_features, &more_labels}) {
    for (const Column& column : *columns) sum += column.values.spec().bytes();
  }
  return sum;
}

namespace data {

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
