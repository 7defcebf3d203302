// Rows of a data set gathered into batches.
#include "concord/compare/run/batches.hpp"

#include <algorithm>

#include "concord/data/selection.hpp"

namespace concord {

namespace {

/// u8 values of a column, as a network reads them.
Tensor decoded(const Column& column) {
  if (column.values.dtype() != DType::u8) return column.values;
  Tensor numbers(DType::f32, column.values.shape());
  const auto from = column.values.values<std::uint8_t>();
  const auto to = numbers.values<float>();
  const std::size_t channels = std::max<std::size_t>(column.mean.size(), 1);
  const std::size_t plane = from.size() / static_cast<std::size_t>(column.values.shape()[0]) / channels;
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<float>(from[i]) * column.scale + column.shift;
    if (!column.mean.empty()) {
      const std::size_t channel = i / plane % channels;
      to[i] = (to[i] - column.mean[channel]) / column.deviation[channel];
    }
  }
  return numbers;
}

}  // namespace

train::Source Batches::source() const {
  train::Source source = train::streamed_source(dataset_);
  for (ColumnSpec& column : source.features) {
    if (column.spec.dtype == DType::u8) column.spec.dtype = DType::f32;
  }
  return source;
}

Batch Batches::next() {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(batch_));
  std::ranges::generate(rows, [&] { return next_row(); });
  const Dataset read = data::read_rows(dataset_, rows, seed_, epoch_);
  Batch batch;
  for (const Column& column : read.feature_columns()) {
    batch.emplace(train::feature_name(column.name), decoded(column));
  }
  for (const Column& column : read.label_columns()) batch.emplace(train::label_name(column.name), column.values);
  return batch;
}

std::int32_t Batches::next_row() {
  if (position_ == order_.size()) {
    order_ = data::permutation(dataset_.size(), seed_, epoch_++);
    position_ = 0;
  }
  return order_[position_++];
}

}  // namespace concord
