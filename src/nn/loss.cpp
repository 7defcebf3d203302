// Losses: one formula each, then the reduction.
#include "concord/nn/loss.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::loss {
namespace {

Value reduced(Value losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return sum(losses);
    case Reduction::none: return losses;
  }
  throw ArgumentError("unknown reduction");
}

/// `formula` of input(0), the prediction, and input(1), the target.
Value elementwise(const char* name, Value prediction, Value target, const Scalar& formula, Reduction reduction) {
  CONCORD_CHECK(prediction.shape() == target.shape(), ShapeError, "{}: prediction {} and target {} differ in shape",
                name, prediction.shape().str(), target.shape().str());
  return reduced(pointwise(name, {prediction, target}, formula), reduction);
}

const Scalar& prediction_of() {
  static const Scalar prediction = scalar::input(0);
  return prediction;
}
const Scalar& target_of() {
  static const Scalar target = scalar::input(1);
  return target;
}
Scalar distance() { return scalar::abs(prediction_of() - target_of()); }

}  // namespace

Value CrossEntropy::operator()(Value logits, Value target) const {
  CONCORD_CHECK(label_smoothing >= 0 && label_smoothing <= 1, ArgumentError,
                "cross_entropy: label smoothing {} is outside [0, 1]", label_smoothing);
  return reduced(cross_entropy_rows(logits, target, label_smoothing), reduction);
}

Value Nll::operator()(Value log_probabilities, Value target) const {
  const Shape& shape = log_probabilities.shape();
  CONCORD_CHECK(shape.rank() == 2 && target.shape() == Shape{shape[0]} && target.dtype() == DType::i32, ShapeError,
                "nll: expected log-probabilities [N, C] and i32 [N] classes, got {} and {}",
                log_probabilities.spec().str(), target.spec().str());
  const Scalar chosen = scalar::select(scalar::equal(scalar::coordinate(0), scalar::input(1)), scalar::input(0), 0.0F);
  const Value picked = sum(pointwise("nll", {log_probabilities, reshape(target, Shape{shape[0], 1})}, chosen), {1});
  const Scalar label = scalar::input(1);
  const Scalar valid = scalar::less_equal(0.0F, label) * scalar::less(label, static_cast<float>(shape[1]));
  // For a label outside [0, C) both numbers are 0, and 0/0 is NaN.
  return reduced(pointwise("nll", {picked, target}, -scalar::input(0) * valid / valid), reduction);
}

Value Mse::operator()(Value prediction, Value target) const {
  const Scalar difference = prediction_of() - target_of();
  return elementwise("mse", prediction, target, difference * difference, reduction);
}

Value L1::operator()(Value prediction, Value target) const {
  return elementwise("l1", prediction, target, distance(), reduction);
}

Value Huber::operator()(Value prediction, Value target) const {
  CONCORD_CHECK(delta > 0, ArgumentError, "huber: delta must be positive, got {}", delta);
  const Scalar d = distance();
  const Scalar formula = scalar::select(scalar::less_equal(d, delta), 0.5F * d * d, delta * (d - 0.5F * delta));
  return elementwise("huber", prediction, target, formula, reduction);
}

Value SmoothL1::operator()(Value prediction, Value target) const {
  CONCORD_CHECK(beta > 0, ArgumentError, "smooth_l1: beta must be positive, got {}", beta);
  const Scalar d = distance();
  const Scalar formula = scalar::select(scalar::less(d, beta), 0.5F * d * d / beta, d - 0.5F * beta);
  return elementwise("smooth_l1", prediction, target, formula, reduction);
}

Value BceWithLogits::operator()(Value logits, Value target) const {
  const Scalar formula = scalar::softplus(prediction_of()) - prediction_of() * target_of();
  return elementwise("bce_with_logits", logits, target, formula, reduction);
}

}  // namespace concord::loss
