// CrossEntropy and Nll: losses of rows, one a sample or pixel, with classes that weigh differently or are ignored.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/nn/class_axis.hpp"
#include "concord/nn/reduced.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::loss {
namespace {

/// (N, C, d…) → (N·d…, C).
Value as_rows(Value x) {
  const Shape& shape = x.shape();
  if (shape.rank() == 2) return x;
  std::vector<std::int64_t> order{0};
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) order.push_back(static_cast<std::int64_t>(axis));
  order.push_back(1);
  return reshape(transpose(x, order), {-1, shape[1]});
}

/// (N, C, d…) → (N, d…).
Shape places_of(const Shape& shape) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.erase(dims.begin() + 1);
  return Shape(std::move(dims));
}

/// What to do about a prediction (N, T, C) of a sequence network, whose target is (N, T).
std::string classes_last_hint(const Shape& prediction, const Shape& target) {
  const auto dims = prediction.dims();
  const bool is_last = prediction.rank() > 2 && std::ranges::equal(dims.first(dims.size() - 1), target.dims());
  if (!is_last) return {};
  return fmt::format(
      ". The classes are the second dimension here, as in PyTorch, but the last of {}: use transpose(prediction, {{0, "
      "{}, …}}), or both as rows, reshape(prediction, {{-1, {}}}) and reshape(target, {{-1}})",
      prediction.str(), prediction.rank() - 1, dims.back());
}

/// Prediction and target as rows.
struct Rows {
  const char* loss;
  Value scores;  // (R, C)
  Value target;  // i32 (R), or f32 (R, C)
  Shape places;  // (N, d…)

  Rows(const char* name, Value prediction, Value wanted, bool probabilities) : loss(name) {
    const Shape& shape = prediction.shape();
    CONCORD_CHECK(shape.rank() >= 2, ShapeError, "{}: expected (N, C, …), got {}", name, shape.str());
    places = places_of(shape);
    const bool is_index = wanted.spec() == TensorSpec{DType::i32, places};
    CONCORD_CHECK(is_index || (probabilities && wanted.spec() == prediction.spec()), ShapeError,
                  "{}: for {} the target must be i32 {}, class indices{}, got {}", name, prediction.spec().str(),
                  places.str(), probabilities ? " or probabilities of the same shape" : "",
                  wanted.spec().str() + classes_last_hint(shape, wanted.shape()));
    scores = as_rows(prediction);
    target = is_index ? reshape(wanted, Shape{places.elements()}) : as_rows(wanted);
  }
  [[nodiscard]] bool is_index() const { return target.dtype() == DType::i32; }
  [[nodiscard]] std::int64_t classes() const { return scores.shape()[1]; }
  [[nodiscard]] Value column() const { return reshape(target, Shape{target.shape()[0], 1}); }
};

/// The weights of classes as a value (C).
Value weights_value(Graph& graph, const char* loss, const std::vector<float>& weights, std::int64_t classes) {
  CONCORD_CHECK(static_cast<std::int64_t>(weights.size()) == classes, ShapeError, "{}: {} weights for {} classes", loss,
                weights.size(), classes);
  std::string name = "loss.class_weights";
  for (int i = 1; graph.find(name); ++i) name = fmt::format("loss.class_weights_{}", i);
  const TensorSpec spec{DType::f32, Shape{classes}};
  return graph.variable(
      std::make_shared<Variable>(Variable{name, spec, {}, false, Tensor::of<float>(spec.shape, weights)}));
}

/// Class indices with those to be ignored as class 0.
Value without_ignored(const Rows& rows, const std::optional<std::int32_t>& ignored) {
  if (!ignored) return rows.target;
  const Scalar is_ignored = scalar::equal(scalar::input(0), static_cast<float>(*ignored));
  return pointwise("known_classes", {rows.target}, scalar::select(is_ignored, 0.0F, scalar::input(0)), DType::i32);
}

/// Reduces the losses of rows as `reduction` says. Ignored rows count as 0. With `counts`, the rows' weights, the mean
/// divides by their sum.
Value finished(const Rows& rows, Value losses, Value counts, const std::optional<std::int32_t>& ignored,
               Reduction reduction) {
  if (ignored) {
    const Value kept = kept_labels(rows.target, *ignored);
    const auto masked = [&](Value x) {
      return pointwise("without_ignored", {x, kept}, scalar::select(scalar::input(1), scalar::input(0), 0.0F));
    };
    losses = masked(losses);
    counts = counts ? masked(counts) : kept;
  }
  if (reduction == Reduction::mean && counts) return weighted_mean(sum(losses), sum(counts));
  return reduced(reduction == Reduction::none ? reshape(losses, rows.places) : losses, reduction);
}

/// The score of each row's class, (R); NaN for a class outside [0, C).
Value chosen(const Rows& rows, Value target) {
  const Scalar is_target = scalar::equal(scalar::coordinate(0), scalar::input(1));
  const Value column = reshape(target, Shape{target.shape()[0], 1});
  const Value picked =
      sum(pointwise(kChosen, {rows.scores, column}, scalar::select(is_target, scalar::input(0), 0.0F)), {1});
  const Scalar label = scalar::input(1), classes = static_cast<float>(rows.classes());
  const Scalar valid = scalar::less_equal(0.0F, label) * scalar::less(label, classes);
  // For a label outside [0, C) both numbers are 0, and 0/0 is NaN.
  return pointwise(kChosen, {picked, target}, scalar::input(0) * valid / valid);
}

void check_ignored(const Rows& rows, const std::optional<std::int32_t>& ignored) {
  CONCORD_CHECK(!ignored || rows.is_index(), ArgumentError, "{}: ignore_index needs class indices, not probabilities",
                rows.loss);
}

}  // namespace

Value CrossEntropy::operator()(Value logits, Value target) const {
  CONCORD_CHECK(label_smoothing >= 0 && label_smoothing <= 1, ArgumentError,
                "cross_entropy: label smoothing {} is outside [0, 1]", label_smoothing);
  const Rows rows("cross_entropy", logits, target, true);
  check_ignored(rows, ignore_index);
  const Value known = rows.is_index() ? without_ignored(rows, ignore_index) : rows.target;
  if (weights.empty()) {
    return finished(rows, cross_entropy_rows(rows.scores, known, label_smoothing), {}, ignore_index, reduction);
  }
  const Value weight = weights_value(logits.graph(), rows.loss, weights, rows.classes());
  const float spread = label_smoothing / static_cast<float>(rows.classes());
  const Value wanted = rows.is_index() ? reshape(known, Shape{known.shape()[0], 1}) : known;
  const Scalar hard = rows.is_index() ? scalar::equal(scalar::coordinate(0), scalar::input(1)) : scalar::input(1);
  const Scalar share = (1.0F - label_smoothing) * hard + spread, factor = scalar::input(2);
  // A class with a share of 0 adds nothing, even where its logarithm is -inf; elsewhere the loss is a line in the
  // probability, with a gradient at 0, too.
  const Scalar is_zero = scalar::equal(share * factor, 0.0F), is_finite = scalar::is_finite(scalar::input(0));
  const Scalar term = scalar::select(rows.is_index() ? is_zero : scalar::select(is_finite, 0.0F, is_zero), 0.0F,
                                     -(share * scalar::input(0) * factor));
  Value losses = sum(pointwise("cross_entropy", {log_softmax(rows.scores), wanted, weight}, term), {1});
  if (!rows.is_index()) return finished(rows, losses, {}, {}, reduction);
  const Value counts = gather(weight, known);  // NaN for a class outside [0, C), and so is the loss then
  losses = pointwise("cross_entropy", {losses, counts},
                     scalar::select(scalar::is_finite(scalar::input(1)), scalar::input(0), scalar::input(1)));
  return finished(rows, losses, counts, ignore_index, reduction);
}

Value Nll::operator()(Value log_probabilities, Value target) const {
  const Rows rows("nll", log_probabilities, target, false);
  const Value known = without_ignored(rows, ignore_index);
  const Value losses = -chosen(rows, known);
  if (weights.empty()) return finished(rows, losses, {}, ignore_index, reduction);
  const Value counts = gather(weights_value(log_probabilities.graph(), rows.loss, weights, rows.classes()), known);
  return finished(rows, losses * counts, counts, ignore_index, reduction);
}

}  // namespace concord::loss
