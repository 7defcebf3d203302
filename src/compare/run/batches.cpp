// Rows of a data set gathered into batches.
#include "concord/compare/run/batches.hpp"

#include <algorithm>
#include <span>

namespace concord {

namespace {

/// The rows of a column, decoded if they are u8 and features.
Tensor gathered(const Column& column, std::span<const std::int32_t> rows, bool decodes) {
  std::vector<std::int64_t> dims(column.values.shape().dims().begin(), column.values.shape().dims().end());
  const std::size_t bytes = column.values.spec().bytes() / static_cast<std::size_t>(dims[0]);
  dims[0] = static_cast<std::int64_t>(rows.size());
  Tensor batch(decodes ? DType::f32 : column.values.dtype(), Shape(std::move(dims)));
  const std::size_t batch_bytes = batch.spec().bytes() / rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto from = column.values.bytes().subspan(static_cast<std::size_t>(rows[i]) * bytes, bytes);
    if (decodes) {
      std::ranges::transform(from, batch.values<float>().subspan(i * bytes).begin(), [&](std::byte pixel) {
        return static_cast<float>(std::to_integer<int>(pixel)) * column.scale + column.shift;
      });
    } else {
      std::ranges::copy(from, batch.bytes().subspan(i * batch_bytes).begin());
    }
  }
  return batch;
}

bool is_decoded(const Column& column) { return column.values.dtype() == DType::u8; }

}  // namespace

train::Source Batches::source() const {
  train::Source source = train::streamed_source(dataset_);
  for (train::SourceColumn& column : source.features) {
    if (column.spec.dtype == DType::u8) column.spec.dtype = DType::f32;
  }
  return source;
}

Batch Batches::next() {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(batch_));
  std::ranges::generate(rows, [&] { return next_row(); });
  Batch batch;
  for (const Column& column : dataset_.feature_columns()) {
    batch.emplace(train::feature_name(column.name), gathered(column, rows, is_decoded(column)));
  }
  for (const Column& column : dataset_.label_columns()) {
    batch.emplace(train::label_name(column.name), gathered(column, rows, false));
  }
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
