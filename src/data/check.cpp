// The checks of data sets, before any work on a device.
#include "concord/core/check.hpp"

#include <algorithm>

#include "concord/core/utf8.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::data {
namespace {

/// "features of data set 'x'", with the name of the column if it has one.
std::string description(const Dataset& dataset, std::string_view kind, const Column& column) {
  return column.name.empty() ? fmt::format("data set '{}': {}", dataset.name, kind)
                             : fmt::format("data set '{}': {} '{}'", dataset.name, kind, column.name);
}

/// One number for each channel, and no deviation of 0.
void check_by_channel(const std::string& what, const Column& column) {
  if (column.mean.empty() && column.deviation.empty()) return;
  const Shape& shape = column.values.shape();
  const auto channels = shape.rank() >= 2 ? static_cast<std::size_t>(shape[1]) : 0;
  CONCORD_CHECK(
      column.values.dtype() == DType::u8 && column.mean.size() == channels && column.deviation.size() == channels,
      ShapeError, "{}: {} means and {} deviations for {}; they are for u8 images, one for each channel", what,
      column.mean.size(), column.deviation.size(), column.values.spec().str());
  CONCORD_CHECK(std::ranges::none_of(column.deviation, [](float d) { return !(d > 0); }), ArgumentError,
                "{}: a deviation is not positive", what);
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

/// Of samples that are not in memory.
void check_specs(const Samples& samples) {
  const std::int64_t size = samples.size();
  CONCORD_CHECK(size >= 1 && size < std::int64_t{1} << 31, ArgumentError,
                "data set '{}': {} samples; there must be from 1 to 2^31 - 1", samples.name, size);
  const auto check = [&](std::string_view kind, const std::vector<ColumnSpec>& columns, DType third) {
    CONCORD_CHECK(!columns.empty(), ArgumentError, "data set '{}' has no {}", samples.name, kind);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const ColumnSpec& column = columns[i];
      const DType type = column.spec.dtype;
      CONCORD_CHECK(type == DType::i32 || type == DType::f32 || type == third, ShapeError,
                    "data set '{}': {} cannot be {}", samples.name, kind, column.spec.str());
      CONCORD_CHECK(is_utf8(column.name) && (i == 0 || !column.name.empty()), ArgumentError,
                    "data set '{}': column {} of its {} needs a name, in UTF-8", samples.name, i, kind);
      const auto before = columns.begin() + static_cast<std::ptrdiff_t>(i);
      CONCORD_CHECK(
          std::find_if(columns.begin(), before, [&](const ColumnSpec& c) { return c.name == column.name; }) == before,
          ArgumentError, "data set '{}': two columns of its {} are named '{}'", samples.name, kind, column.name);
      CONCORD_CHECK(column.mean.size() == column.deviation.size() &&
                        (column.mean.empty() || (column.spec.shape.rank() >= 1 && type == DType::u8 &&
                                                 std::ssize(column.mean) == column.spec.shape[0])),
                    ShapeError,
                    "data set '{}': {} means and {} deviations for {}; they are for u8 images, one for "
                    "each channel",
                    samples.name, column.mean.size(), column.deviation.size(), column.spec.str());
    }
  };
  check("features", samples.feature_specs(), DType::u8);
  check("labels", samples.label_specs(), DType::f32);
}

}  // namespace

bool labels_in_range(const Samples& samples) {
  const Dataset* const dataset = dataset_of(samples);
  if (dataset == nullptr) return true;
  return std::ranges::all_of(dataset->label_columns(), [](const Column& column) {
    if (column.classes <= 0 || column.values.dtype() != DType::i32) return true;
    return std::ranges::all_of(column.values.values<std::int32_t>(),
                               [&](std::int32_t v) { return v >= 0 && v < column.classes; });
  });
}

void check(const Samples& samples, std::span<const std::optional<std::int32_t>> ignored) {
  const Dataset* const in_memory = dataset_of(samples);
  if (in_memory == nullptr) return check_specs(samples);
  const Dataset& dataset = *in_memory;
  const std::vector<Column> features = dataset.feature_columns(), labels = dataset.label_columns();
  CONCORD_CHECK(!dataset.features.bytes().empty() && !dataset.labels.bytes().empty(), ArgumentError,
                "data set '{}' is empty: features {}, labels {}", dataset.name, dataset.features.spec().str(),
                dataset.labels.spec().str());
  for (const Column& column : features) {
    const DType type = column.values.dtype();
    CONCORD_CHECK(type == DType::u8 || type == DType::f32 || type == DType::i32, ShapeError,
                  "{} must be u8, f32 or i32, got {}", description(dataset, "features", column),
                  column.values.spec().str());
    check_by_channel(description(dataset, "features", column), column);
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

}  // namespace concord::data
