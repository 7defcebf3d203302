// Losses with a margin: sums over a row where there is one, then the formula of a sample.
#include "concord/nn/margin_loss.hpp"

#include "concord/nn/reduced.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::loss {
namespace {

using scalar::select;

Scalar positive_part(const Scalar& a) { return scalar::max(a, 0.0F); }

void expect_embeddings(const char* loss, Value a, Value b) {
  CONCORD_CHECK(a.shape().rank() == 2 && a.shape() == b.shape(), ShapeError,
                "{}: expected embeddings (N, D) of one shape, got {} and {}", loss, a.shape().str(), b.shape().str());
}

void expect_pairs(const char* loss, Value a, Value b, Value target) {
  expect_embeddings(loss, a, b);
  CONCORD_CHECK(target.shape() == Shape{a.shape()[0]}, ShapeError, "{}: expected targets [{}], got {}", loss,
                a.shape()[0], target.shape().str());
}

/// The p-norm of each row of a − b + eps, (N).
Value distance(Value a, Value b, float p, float eps) {
  const Scalar size = scalar::abs(scalar::input(0) - scalar::input(1) + eps);
  if (p == 1) return sum(pointwise("distance", {a, b}, size), {1});
  if (p == 2) return norm(pointwise("distance", {a, b}, size), {1});
  const Value powers = sum(pointwise("distance", {a, b}, scalar::power(size, p)), {1});
  return pointwise("distance", {powers}, scalar::power(scalar::input(0), 1 / p));
}

}  // namespace

Value Hinge::operator()(Value scores, Value target) const {
  expect_same_shape("hinge", scores, target);
  const Scalar part = positive_part(margin - scalar::input(0) * scalar::input(1));
  return reduced(pointwise("hinge", {scores, target}, squared ? part * part : part), reduction);
}

Value MultiMargin::operator()(Value scores, Value target) const {
  const Shape& shape = scores.shape();
  CONCORD_CHECK(shape.rank() == 2 && target.spec() == (TensorSpec{DType::i32, Shape{shape[0]}}), ShapeError,
                "multi_margin: expected scores (N, C) and i32 [N] classes, got {} and {}", scores.spec().str(),
                target.spec().str());
  CONCORD_CHECK(p == 1 || p == 2, ArgumentError, "multi_margin: p must be 1 or 2, got {}", p);
  const Value column = reshape(target, Shape{shape[0], 1});
  const Scalar is_target = scalar::equal(scalar::coordinate(0), scalar::input(1));
  const Value chosen =
      sum(pointwise("multi_margin", {scores, column}, select(is_target, scalar::input(0), 0.0F)), {1}, true);
  const Scalar part = positive_part(margin - scalar::input(2) + scalar::input(0));
  const Scalar other = select(is_target, 0.0F, p == 1 ? part : part * part);
  const Value total = sum(pointwise("multi_margin", {scores, column, chosen}, other), {1});
  const Scalar label = scalar::input(1), classes = static_cast<float>(shape[1]);
  const Scalar valid = scalar::less_equal(0.0F, label) * scalar::less(label, classes);
  // For a label outside [0, C) the factor is 0/0.
  return reduced(pointwise("multi_margin", {total, target}, scalar::input(0) / classes * (valid / valid)), reduction);
}

Value CosineEmbedding::operator()(Value a, Value b, Value target) const {
  expect_pairs("cosine_embedding", a, b, target);
  // Each embedding by √(|a|² + 1e-12) before they are multiplied, so that no product leaves fp32.
  const auto directed = [](Value x) {
    constexpr float kEps = 1e-12F, kFar = 1e4F;  // where 1e-12 adds nothing
    const Scalar length = scalar::input(1), near = scalar::min(length, kFar);
    return pointwise("direction", {x, norm(x, {1}, true)},
                     scalar::input(0) / select(scalar::less(length, kFar), scalar::sqrt(near * near + kEps), length));
  };
  const Value both = sum(directed(a) * directed(b), {1});
  const Scalar cosine = scalar::input(0);
  const Scalar formula = select(scalar::less(0.0F, scalar::input(1)), 1.0F - cosine, positive_part(cosine - margin));
  return reduced(pointwise("cosine_embedding", {both, target}, formula), reduction);
}

Value Contrastive::operator()(Value a, Value b, Value target) const {
  expect_pairs("contrastive", a, b, target);
  const Scalar d = scalar::input(0), alike = scalar::input(1), apart = positive_part(margin - d);
  const Scalar formula = 0.5F * (alike * d * d + (1.0F - alike) * apart * apart);
  return reduced(pointwise("contrastive", {distance(a, b, 2, eps), target}, formula), reduction);
}

Value TripletMargin::operator()(Value anchor, Value positive, Value negative) const {
  expect_embeddings("triplet_margin", anchor, positive);
  expect_embeddings("triplet_margin", anchor, negative);
  CONCORD_CHECK(p > 0, ArgumentError, "triplet_margin: p must be positive, got {}", p);
  const Value near = distance(anchor, positive, p, eps);
  Value far = distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, distance(positive, negative, p, eps));
  return reduced(pointwise("triplet_margin", {near, far}, positive_part(scalar::input(0) - scalar::input(1) + margin)),
                 reduction);
}

}  // namespace concord::loss
