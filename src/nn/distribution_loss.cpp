// Losses of distributions: a formula each, over the prediction and the target.
#include "concord/nn/distribution_loss.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

#include "concord/nn/reduced.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord::loss {
namespace {

using scalar::log;
using scalar::select;

const Scalar& first() {
  static const Scalar value = scalar::input(0);
  return value;
}
const Scalar& second() {
  static const Scalar value = scalar::input(1);
  return value;
}
Scalar is_positive(const Scalar& a) { return scalar::less(0.0F, a); }

}  // namespace

Value KlDivergence::operator()(Value log_probabilities, Value target) const {
  expect_same_shape("kl_divergence", log_probabilities, target);
  const Scalar positive = is_positive(second());
  const Scalar safe = select(positive, second(), 1.0F);  // no logarithm of 0, not even in a gradient
  // A target of probability 0 adds nothing, even where its logarithm is −∞.
  const Scalar probability = scalar::exp(second());
  const Scalar formula = log_target ? select(probability, probability * (second() - first()), 0.0F)
                                    : select(positive, second() * (log(safe) - first()), 0.0F);
  const Value terms = pointwise("kl_divergence", {log_probabilities, target}, formula);
  if (reduction != Reduction::mean || !per_sample) return reduced(terms, reduction);
  CONCORD_CHECK(terms.shape().rank() >= 1, ShapeError, "kl_divergence: a mean over samples needs an axis of samples");
  return sum(terms) / static_cast<float>(terms.shape()[0]);
}

Value Distillation::operator()(Value student, Value teacher) const {
  CONCORD_CHECK(temperature > 0, ArgumentError, "distillation: the temperature must be positive, got {}", temperature);
  CONCORD_CHECK(student.shape().rank() == 2, ShapeError, "distillation: expected logits (N, C), got {}",
                student.shape().str());
  expect_same_shape("distillation", student, teacher);
  const KlDivergence divergence{.log_target = true, .reduction = Reduction::none};
  const Value terms = divergence(log_softmax(student / temperature), log_softmax(teacher / temperature));
  return reduced(sum(terms, {1}) * (temperature * temperature), reduction);
}

Value PoissonNll::operator()(Value prediction, Value target) const {
  expect_same_shape("poisson_nll", prediction, target);
  CONCORD_CHECK(eps > 0, ArgumentError, "poisson_nll: eps must be positive, got {}", eps);
  Scalar formula = log_input ? scalar::exp(first()) - second() * first() : first() - second() * log(first() + eps);
  if (full) {
    const Scalar large = scalar::less(1.0F, second());
    const Scalar safe = select(large, second(), 2.0F);
    const auto two_pi = static_cast<float>(2 * std::numbers::pi);
    formula = formula + select(large, safe * log(safe) - safe + 0.5F * log(two_pi * safe), 0.0F);
  }
  return reduced(pointwise("poisson_nll", {prediction, target}, formula), reduction);
}

Value GaussianNll::operator()(Value mean, Value target, Value variance) const {
  expect_same_shape("gaussian_nll", mean, target);
  CONCORD_CHECK(eps > 0, ArgumentError, "gaussian_nll: eps must be positive, got {}", eps);
  // As in PyTorch, a variance below eps has the slope that it would have at eps.
  const Value missing = stop_gradient(pointwise("gaussian_nll_eps", {variance}, scalar::max(eps - first(), 0.0F)));
  const Scalar difference = first() - second(), v = scalar::input(2) + scalar::input(3);
  Scalar formula = 0.5F * (log(v) + difference * difference / v);
  if (full) formula = formula + static_cast<float>(0.5 * std::log(2 * std::numbers::pi));
  const Value losses = pointwise("gaussian_nll", {mean, target, variance, missing}, formula);
  CONCORD_CHECK(losses.shape() == mean.shape(), ShapeError, "gaussian_nll: the variance {} does not broadcast to {}",
                variance.shape().str(), mean.shape().str());
  return reduced(losses, reduction);
}

Value Focal::operator()(Value logits, Value target) const {
  expect_same_shape("focal", logits, target);
  CONCORD_CHECK(gamma >= 0 && alpha <= 1, ArgumentError, "focal: gamma {} must not be negative, alpha {} at most 1",
                gamma, alpha);
  // 1 − p_t; where t is 0 or 1 nothing cancels. At least the smallest normal number, so that no power of it is
  // infinite.
  const Scalar missed =
      scalar::max(second() * scalar::sigmoid(-first()) + (1.0F - second()) * scalar::sigmoid(first()), 0x1p-126F);
  Scalar formula = bce_with_logits_formula();
  if (gamma == 1) formula = formula * missed;
  if (gamma == 2) formula = formula * missed * missed;
  if (gamma != 0 && gamma != 1 && gamma != 2) formula = formula * scalar::power(missed, gamma);
  if (alpha >= 0) formula = formula * (alpha * second() + (1.0F - alpha) * (1.0F - second()));
  return reduced(pointwise("focal", {logits, target}, formula), reduction);
}

Value Dice::operator()(Value probabilities, Value target) const {
  expect_same_shape("dice", probabilities, target);
  const std::size_t rank = probabilities.shape().rank();
  CONCORD_CHECK(rank >= 2, ShapeError, "dice: expected probabilities (N, C, …), got {}", probabilities.shape().str());
  CONCORD_CHECK(smooth >= 0, ArgumentError, "dice: smooth must not be negative, got {}", smooth);
  std::vector<std::int64_t> axes(rank - std::min<std::size_t>(rank - 1, 2));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(rank - axes.size()));
  const Value common = sum(probabilities * target, axes), all = sum(probabilities + target, axes);
  return reduced(pointwise("dice", {common, all}, 1.0F - (2.0F * first() + smooth) / (second() + smooth)), reduction);
}

}  // namespace concord::loss
