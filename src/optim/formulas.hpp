// What the formulas of the optimizers have in common. Internal to the room.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/optim/optimizers.hpp"

namespace concord::optim {

/// In [0, below).
inline void check_range(const char* optimizer, const char* parameter, double value, double below) {
  CONCORD_CHECK(value >= 0 && value < below, ArgumentError, "{}: {} is {}, must be in [0, {})", optimizer, parameter,
                value, below);
}
inline void check_range(const char* optimizer, const char* parameter, double value) {
  check_range(optimizer, parameter, value, INFINITY);
}
inline void check_range(const char* optimizer, const Betas& betas) {
  check_range(optimizer, "betas.first", betas.first, 1);
  check_range(optimizer, "betas.second", betas.second, 1);
}

inline Scalar number(double value) { return static_cast<float>(value); }

/// gradient + decay·weight.
inline Scalar decayed(const UpdateTerms& terms, double weight_decay) {
  return weight_decay == 0 ? terms.gradient : terms.gradient + number(weight_decay) * terms.weight;
}

/// weight·(1 − lr·decay), for decay that leaves the gradient alone.
inline Scalar shrunk(const UpdateTerms& terms, double weight_decay) {
  return weight_decay == 0 ? terms.weight : terms.weight * (1.0F - terms.lr * number(weight_decay));
}

constexpr float kLargest = std::numeric_limits<float>::max();

/// At most the largest number of fp32 and at least its negative: what has no bound of its own, such as a sum of
/// gradients.
inline Scalar kept(const Scalar& a) { return scalar::max(scalar::min(a, kLargest), -kLargest); }

/// a moved towards b by the fraction `share` in [0, 1]. No b − a, which may be beyond fp32.
inline Scalar moved(const Scalar& a, const Scalar& b, const Scalar& share) { return a + (share * b - share * a); }
inline Scalar moved(const Scalar& a, const Scalar& b, double keep) { return moved(a, b, number(1 - keep)); }

/// A second moment, the mean of squares of numbers of any size of fp32. Stored as it is in PyTorch where it lies well
/// within fp32, between kLeastMoment and kMostMoment; else, since squares leave fp32, its negated root.
struct Moment {
  Scalar state;  // what is stored
  Scalar root;   // its root
};
constexpr float kLeastMoment = 1e-28F, kMostMoment = 1e36F;

/// √(a² + b²) for a, b of 0 or more.
inline Scalar hypotenuse(const Scalar& a, const Scalar& b) {
  const Scalar largest = scalar::max(scalar::max(a, b), std::numeric_limits<float>::min());
  const Scalar p = a / largest, q = b / largest;
  return scalar::min(largest * scalar::sqrt(p * p + q * q), kLargest);
}

/// The root of a stored moment.
inline Scalar root_of(const Scalar& state) {
  return scalar::select(scalar::less(state, 0.0F), -state, scalar::sqrt(state));
}

/// The moment of which fp32 gives `direct`, from a state that was not negative, and which has this root.
inline Moment stored_moment(const Scalar& before, const Scalar& direct, const Scalar& root) {
  const Scalar square = scalar::select(scalar::less(before, 0.0F), root * root, direct);
  const Scalar fits = scalar::less(kLeastMoment, square) * scalar::less(square, kMostMoment);
  return {scalar::select(fits, square, 0.0F - root), scalar::select(fits, scalar::sqrt(square), root)};
}

/// The moment moved towards value²: a·keep + value²·share, with the roots of both parts.
inline Moment moved_square(const Scalar& before, const Scalar& value, const Scalar& keep, const Scalar& share,
                           const Scalar& root_keep, const Scalar& root_share) {
  const Scalar root = hypotenuse(root_keep * root_of(before), root_share * scalar::abs(value));
  return stored_moment(before, before * keep + share * value * value, root);
}
inline Moment moved_square(const Scalar& before, const Scalar& value, double keep) {
  return moved_square(before, value, number(keep), number(1 - keep), number(std::sqrt(keep)),
                      number(std::sqrt(1 - keep)));
}
/// By a fraction that is computed.
inline Moment moved_square(const Scalar& before, const Scalar& value, const Scalar& share) {
  const Scalar keep = 1.0F - share;
  return moved_square(before, value, keep, share, scalar::sqrt(keep), scalar::sqrt(share));
}

/// The larger of two stored moments.
inline Scalar larger_moment(const Scalar& a, const Scalar& b) {
  return scalar::select(scalar::less(root_of(a), root_of(b)), b, a);
}

/// a + eps to divide by; where eps is nothing in fp32 and a is 0, so that what is divided is 0 too, a number above 0.
inline Scalar divisor(const Scalar& a, double eps) {
  constexpr double kNothing = 1e-37;
  return eps > kNothing ? a + number(eps) : scalar::max(a, std::numeric_limits<float>::min());
}

/// log beta in double precision, finite for beta = 0.
inline double log_of(double beta) { return std::max(std::log(beta), -1e4); }

/// 1 − beta^step, exact for small steps too: no 1 − (almost 1) is computed.
inline Scalar bias_correction(double beta, const Scalar& step) { return -scalar::expm1(step * number(log_of(beta))); }

}  // namespace concord::optim
