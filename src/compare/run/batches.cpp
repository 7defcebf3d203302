// Rows of a data set gathered into batches.
#include "concord/compare/run/batches.hpp"

#include <algorithm>
#include <cstring>

namespace concord {

TensorSpec Batches::features() const {
  const TensorSpec sample = dataset_.feature_spec();
  return {sample.dtype == DType::u8 ? DType::f32 : sample.dtype, with_batch(sample.shape)};
}

TensorSpec Batches::labels() const { return {dataset_.labels.dtype(), with_batch(dataset_.label_spec().shape)}; }

std::pair<Tensor, Tensor> Batches::next() {
  Tensor x(features()), y(labels());
  const std::size_t label_bytes = y.spec().bytes() / static_cast<std::size_t>(batch_);
  const std::size_t values = static_cast<std::size_t>(x.elements() / batch_);
  const std::size_t feature_bytes = x.spec().bytes() / static_cast<std::size_t>(batch_);
  for (std::size_t row = 0; row < static_cast<std::size_t>(batch_); ++row) {
    const auto from = static_cast<std::size_t>(next_row());
    std::memcpy(y.bytes().data() + row * label_bytes, dataset_.labels.bytes().data() + from * label_bytes, label_bytes);
    if (dataset_.features.dtype() == DType::u8) {
      const auto to = x.values<float>().subspan(row * values, values);
      const auto pixels = dataset_.features.values<std::uint8_t>().subspan(from * values, values);
      std::transform(pixels.begin(), pixels.end(), to.begin(),
                     [&](std::uint8_t p) { return static_cast<float>(p) * dataset_.scale + dataset_.shift; });
    } else {
      std::memcpy(x.bytes().data() + row * feature_bytes, dataset_.features.bytes().data() + from * feature_bytes,
                  feature_bytes);
    }
  }
  return {std::move(x), std::move(y)};
}

Shape Batches::with_batch(const Shape& sample) const {
  std::vector<std::int64_t> dims{batch_};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return Shape(std::move(dims));
}

std::int32_t Batches::next_row() {
  if (position_ == order_.size()) {
    order_ = data::permutation(dataset_.size(), seed_, epoch_++);
    position_ = 0;
  }
  return order_[position_++];
}

}  // namespace concord
