// Metrics: a label's rank among the logits of its row.
#include "concord/train/metrics.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord {

Hits count_hits(Value logits, Value labels, int k) {
  using scalar::equal, scalar::less;
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
  const auto hits = pointwise("hits", {rank, own_logit}, {within(1), within(k)}, {DType::f32, DType::f32});
  return {reshape(sum(hits[0]), Shape{1}), reshape(sum(hits[1]), Shape{1})};
}

Tensor confusion_matrix(const Tensor& outputs, const Tensor& labels) {
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
    CONCORD_CHECK(label >= 0 && label < classes, ArgumentError,
                  "confusion matrix: label {} of sample {} is not in [0, {})", label, i, classes);
    const auto row = values.subspan(i * row_size, row_size);
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    ++cells[static_cast<std::size_t>(label) * row_size + predicted];
  }
  return counts;
}

}  // namespace concord
