// Losses of single elements: one formula each, then the reduction. CrossEntropy and Nll are in class_loss.cpp.
#include "concord/nn/loss.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/reduced.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::loss {
namespace {

/// `formula` of input(0), the prediction, and input(1), the target.
Value elementwise(const char* name, Value prediction, Value target, const Scalar& formula, Reduction reduction) {
  expect_same_shape(name, prediction, target);
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
Scalar difference() { return prediction_of() - target_of(); }
/// d²/2 of the difference d: not of its absolute value, whose slope at 0 is 0, so that the second derivative there
/// is 1.
Scalar half_square() { return 0.5F * difference() * difference(); }
Scalar distance() { return scalar::abs(difference()); }

}  // namespace

Value Mse::operator()(Value prediction, Value target) const {
  return elementwise("mse", prediction, target, difference() * difference(), reduction);
}

Value L1::operator()(Value prediction, Value target) const {
  return elementwise("l1", prediction, target, distance(), reduction);
}

Value Huber::operator()(Value prediction, Value target) const {
  CONCORD_CHECK(delta > 0, ArgumentError, "huber: delta must be positive, got {}", delta);
  const Scalar d = distance();
  const Scalar formula = scalar::select(scalar::less_equal(d, delta), half_square(), delta * (d - 0.5F * delta));
  return elementwise("huber", prediction, target, formula, reduction);
}

Value SmoothL1::operator()(Value prediction, Value target) const {
  CONCORD_CHECK(beta > 0, ArgumentError, "smooth_l1: beta must be positive, got {}", beta);
  const Scalar d = distance();
  const Scalar formula = scalar::select(scalar::less(d, beta), half_square() / beta, d - 0.5F * beta);
  return elementwise("smooth_l1", prediction, target, formula, reduction);
}

Value BceWithLogits::operator()(Value logits, Value target) const {
  return elementwise("bce_with_logits", logits, target, bce_with_logits_formula(), reduction);
}

}  // namespace concord::loss
