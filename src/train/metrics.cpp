// Metrics: a label's rank among the logits of its row.
#include "concord/train/metrics.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord {

namespace {

/// Ones and zeros (labels, 1) as a count, exact as long as a sample has at most 2^24 labels and the samples make at
/// most 2^24 such units or rests.
Value counted(Value hits, std::int64_t samples) {
  const Scalar number = scalar::input(0);
  if (hits.shape().elements() / samples <= kHitUnit) {
    const Scalar first_only = scalar::select(scalar::equal(scalar::coordinate(0), 0.0F), number, 0.0F);
    return pointwise("count", {reshape(sum(hits), Shape{1})}, first_only, DType::f32, Shape{2});
  }
  const Value of_samples = sum(reshape(hits, {samples, -1}), {1});
  const Scalar units = scalar::floor(number * (1.0F / static_cast<float>(kHitUnit)));
  const auto parts = pointwise("count", {of_samples}, {number - units * static_cast<float>(kHitUnit), units},
                               {DType::f32, DType::f32});
  return concat({reshape(sum(parts[0]), Shape{1}), reshape(sum(parts[1]), Shape{1})}, 0);
}

}  // namespace

Value with_classes_last(Value outputs, std::size_t axis) {
  const std::size_t rank = outputs.shape().rank();
  if (axis + 1 == rank) return outputs;
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(static_cast<std::int64_t>(i));
  }
  order.push_back(static_cast<std::int64_t>(axis));
  return transpose(outputs, order);
}

Value accuracy(Value outputs, Value labels, std::size_t class_axis) {
  const Hits hits =
      count_hits(with_classes_last(outputs, class_axis), labels, 1, find_kept_labels(labels.graph(), labels));
  const Scalar unit = scalar::select(scalar::equal(scalar::coordinate(0), 0.0F), 1.0F, static_cast<float>(kHitUnit));
  const auto number = [&](Value count) { return sum(pointwise("number", {count}, scalar::input(0) * unit)); };
  const Value all =
      hits.labels ? number(hits.labels) : full(labels.graph(), Shape{}, static_cast<float>(labels.shape().elements()));
  return loss::weighted_mean(number(hits.first), all);
}

std::int64_t most_hits(const Shape& labels) {
  const std::int64_t a_sample = labels.elements() / labels[0];
  return labels[0] * std::max(std::min(a_sample, kHitUnit), a_sample / kHitUnit);
}

Hits count_hits(Value logits, Value labels, int k, Value kept) {
  using scalar::equal, scalar::less;
  const std::int64_t samples = labels.shape()[0];
  logits = reshape(logits, {labels.shape().elements(), -1});
  const Value column = reshape(labels, {-1, 1});
  const Scalar logit = scalar::input(0), label = scalar::input(1), own = scalar::input(2);
  const Scalar index = scalar::coordinate(0);
  const Value own_logit =
      sum(pointwise("own_logit", {logits, column}, scalar::select(equal(index, label), logit, 0.0F)), {1}, true);
  const Scalar before = less(own, logit) + equal(own, logit) * less(index, label);
  const Value rank = sum(pointwise("before_own", {logits, column, own_logit}, before), {1}, true);  // (N, 1)
  const auto within = [](int places) {
    return less(scalar::input(0), static_cast<float>(places)) * scalar::is_finite(scalar::input(1));
  };
  if (!kept) {
    const auto hits = pointwise("hits", {rank, own_logit}, {within(1), within(k)}, {DType::f32, DType::f32});
    return {counted(hits[0], samples), counted(hits[1], samples), {}};
  }
  kept = reshape(kept, {-1, 1});
  const auto among = [&](int places) { return scalar::select(scalar::input(2), within(places), 0.0F); };
  const auto hits = pointwise("hits", {rank, own_logit, kept}, {among(1), among(k)}, {DType::f32, DType::f32});
  return {counted(hits[0], samples), counted(hits[1], samples), counted(kept, samples)};
}

Tensor confusion_matrix(const Tensor& outputs, const Tensor& labels, std::optional<std::int32_t> ignored) {
  CONCORD_CHECK(outputs.shape().rank() == 2 && outputs.shape()[1] > 0 && labels.shape() == Shape{outputs.shape()[0]},
                ShapeError, "confusion matrix: expected outputs [N, C] and labels [N], got {} and {}",
                outputs.spec().str(), labels.spec().str());
  const std::int64_t classes = outputs.shape()[1];
  const auto row_size = static_cast<std::size_t>(classes);
  const auto values = outputs.values<float>();
  const auto label_values = labels.values<std::int32_t>();
  Tensor counts(DType::i32, Shape{classes, classes});
  const auto cells = counts.values<std::int32_t>();
  for (std::size_t i = 0; i < label_values.size(); ++i) {
    const std::int32_t label = label_values[i];
    if (label == ignored) continue;
    CONCORD_CHECK(label >= 0 && label < classes, ArgumentError,
                  "confusion matrix: label {} of sample {} is not in [0, {})", label, i, classes);
    const auto row = values.subspan(i * row_size, row_size);
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    ++cells[static_cast<std::size_t>(label) * row_size + predicted];
  }
  return counts;
}

}  // namespace concord
