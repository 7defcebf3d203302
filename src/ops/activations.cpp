// Activations: one formula each, so written that the slope at a kink is PyTorch's and NaN stays NaN.
#include "concord/ops/activations.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/rules.hpp"
#include "concord/ops/softmax.hpp"

namespace concord {
namespace {

using ops::x0;
using ops::x1;

Value gated(const char* name, Value x, std::int64_t axis, const Scalar& formula) {
  CONCORD_CHECK(x.shape()[axis] % 2 == 0, ShapeError, "{}: axis {} of {} must have an even size", name, axis,
                x.shape().str());
  return pointwise(name, chunk(x, 2, axis), formula);
}

}  // namespace

Value hardtanh(Value x, float low, float high) {
  CONCORD_CHECK(low < high, ArgumentError, "hardtanh: low {} is not below high {}", low, high);
  const auto inside = [&](const Scalar& at_low, const Scalar& at_high, const Scalar& between) {
    return scalar::select(scalar::less_equal(x0(), low), at_low,
                          scalar::select(scalar::less_equal(high, x0()), at_high, between));
  };
  return pointwise_by_result("hardtanh", x, inside(low, high, x0()), inside(0.0F, 0.0F, 1.0F));
}

Value selu(Value x) {
  constexpr float kScale = 1.0507009873554804934193349852946F, kAlpha = 1.6732632423543772848170429916717F;
  return pointwise("selu", {x},
                   scalar::select(scalar::less(0.0F, x0()), kScale * x0(), kScale * kAlpha * scalar::expm1(x0())));
}

Value celu(Value x, float alpha) {
  CONCORD_CHECK(alpha != 0, ArgumentError, "celu: alpha must not be 0");
  return pointwise("celu", {x}, scalar::select(scalar::less(0.0F, x0()), x0(), alpha * scalar::expm1(x0() / alpha)));
}

// Far left it is x·exp(x) as silu is, which knows what -∞ gives; far right it is x, whose slope is not 1 + ∞·0.
Value mish(Value x) {
  const Scalar middle = x0() * scalar::tanh(scalar::softplus(x0()));
  return pointwise("mish", {x},
                   scalar::select(scalar::less(x0(), -20.0F), scalar::silu(x0()),
                                  scalar::select(scalar::less(20.0F, x0()), x0(), middle)));
}

Value log_sigmoid(Value x) { return pointwise("log_sigmoid", {x}, -scalar::softplus(-x0())); }

// Outside [-1, 1] as ±(1 - 1/(1 + |x|)): the slope of a quotient would be a difference of nearly equal numbers there.
Value softsign(Value x) {
  const Scalar size = scalar::abs(x0()), inverse = 1.0F / (1.0F + size);
  const Scalar far = scalar::select(scalar::less(0.0F, x0()), 1.0F - inverse, inverse - 1.0F);
  return pointwise("softsign", {x}, scalar::select(scalar::less_equal(size, 1.0F), x0() / (1.0F + size), far));
}

Value prelu(Value x, Value slope) {
  const Value y = pointwise("prelu", {x, slope}, scalar::select(scalar::less(0.0F, x0()), x0(), x0() * x1()));
  CONCORD_CHECK(y.shape() == x.shape(), ShapeError, "prelu: the slope {} does not broadcast to {}", slope.shape().str(),
                x.shape().str());
  return y;
}

Value softmin(Value x, std::int64_t axis) { return softmax(-x, axis); }

Value glu(Value x, std::int64_t axis) { return gated("glu", x, axis, x0() * scalar::sigmoid(x1())); }

Value swiglu(Value x, std::int64_t axis) { return gated("swiglu", x, axis, scalar::silu(x0()) * x1()); }

}  // namespace concord
