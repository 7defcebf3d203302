// What the formulas of the optimizers have in common. Internal to the room.
#pragma once

#include <algorithm>
#include <cmath>

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

/// a moved towards b by the fraction 1 − keep.
inline Scalar moved(const Scalar& a, const Scalar& b, double keep) { return a + number(1 - keep) * (b - a); }

/// a·keep + value²·(1 − keep).
inline Scalar moved_square(const Scalar& a, const Scalar& value, double keep) {
  return a * number(keep) + number(1 - keep) * value * value;
}

/// log beta in double precision, finite for beta = 0.
inline double log_of(double beta) { return std::max(std::log(beta), -1e4); }

/// 1 − beta^step, exact for small steps too: no 1 − (almost 1) is computed.
inline Scalar bias_correction(double beta, const Scalar& step) { return -scalar::expm1(step * number(log_of(beta))); }

}  // namespace concord::optim
