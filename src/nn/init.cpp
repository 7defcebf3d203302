// Initialisers: bounds and deviations from fans and gains.
#include "concord/nn/init.hpp"

#include <cmath>

#include "concord/core/check.hpp"

namespace concord::nn::init {
namespace {

double kaiming_deviation(const Shape& weights, const KaimingOptions& options) {
  const Fans fans = fans_of(weights);
  const auto fan = static_cast<double>(options.fan == Fan::in ? fans.in : fans.out);
  return gain_of(options.nonlinearity, options.slope) / std::sqrt(fan);
}

double xavier_deviation(const Shape& weights, double gain) {
  const Fans fans = fans_of(weights);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

Initializer symmetric(double deviation) {
  const double bound = std::sqrt(3.0) * deviation;
  return uniform(-bound, bound);
}

}  // namespace

Fans fans_of(const Shape& weights) {
  CONCORD_CHECK(weights.rank() >= 2, ShapeError, "fans need weights of two dimensions or more, got {}", weights.str());
  const std::int64_t in_out = weights[0] * weights[1];
  const std::int64_t field = in_out == 0 ? 0 : weights.elements() / in_out;
  return {weights[1] * field, weights[0] * field};
}

double gain_of(Nonlinearity function, double slope) {
  switch (function) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3.0;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
  }
  throw ArgumentError("unknown nonlinearity");
}

Initializer constant(double value) { return {Initializer::Kind::constant, static_cast<float>(value), 0}; }

Initializer uniform(double low, double high) {
  CONCORD_CHECK(low <= high, ArgumentError, "uniform: low {} is above high {}", low, high);
  return {Initializer::Kind::uniform, static_cast<float>(low), static_cast<float>(high)};
}

Initializer normal(double mean, double deviation) {
  CONCORD_CHECK(deviation >= 0, ArgumentError, "normal: the deviation {} is negative", deviation);
  return {Initializer::Kind::normal, static_cast<float>(mean), static_cast<float>(deviation)};
}

Initializer xavier_uniform(const Shape& weights, double gain) { return symmetric(xavier_deviation(weights, gain)); }
Initializer xavier_normal(const Shape& weights, double gain) { return normal(0, xavier_deviation(weights, gain)); }

Initializer kaiming_uniform(const Shape& weights, const KaimingOptions& options) {
  return symmetric(kaiming_deviation(weights, options));
}

Initializer kaiming_normal(const Shape& weights, const KaimingOptions& options) {
  return normal(0, kaiming_deviation(weights, options));
}

Initializer default_weights(const Shape& weights) { return kaiming_uniform(weights, {.slope = std::sqrt(5.0)}); }

Initializer default_bias(const Shape& weights) {
  const double bound = 1 / std::sqrt(static_cast<double>(fans_of(weights).in));
  return uniform(-bound, bound);
}

}  // namespace concord::nn::init
