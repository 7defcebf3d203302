// Arithmetic operators, activations and elementwise functions: one formula each. Where a function has a kink, the
// formula is written so that its symbolic derivative takes PyTorch's value there, and so that NaN stays NaN.
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace {

using ops::x0;
using ops::x1;

/// The type of what is added, subtracted or multiplied.
DType type_with(const Value& a, const Value& b) {
  const auto is_whole = [](const Value& x) { return x.dtype() == DType::i32 || x.dtype() == DType::u8; };
  return is_whole(a) && is_whole(b) ? DType::i32 : DType::f32;
}

}  // namespace

Value ops::whole_as(Value result, Value operand) {
  const DType type = type_with(operand, operand);
  return result.dtype() == type ? result : cast(result, type);
}

Value operator+(Value a, Value b) { return pointwise("add", {a, b}, x0() + x1(), type_with(a, b)); }
Value operator-(Value a, Value b) { return pointwise("subtract", {a, b}, x0() - x1(), type_with(a, b)); }
Value operator*(Value a, Value b) { return pointwise("multiply", {a, b}, x0() * x1(), type_with(a, b)); }
Value operator/(Value a, Value b) { return pointwise("divide", {a, b}, x0() / x1()); }
Value operator+(Value a, float b) { return pointwise("add", {a}, x0() + b); }
Value operator-(Value a, float b) { return pointwise("subtract", {a}, x0() - b); }
Value operator*(Value a, float b) { return pointwise("multiply", {a}, x0() * b); }
Value operator/(Value a, float b) { return pointwise("divide", {a}, x0() / b); }
Value operator+(float a, Value b) { return pointwise("add", {b}, a + x0()); }
Value operator-(float a, Value b) { return pointwise("subtract", {b}, a - x0()); }
Value operator*(float a, Value b) { return pointwise("multiply", {b}, a * x0()); }
Value operator/(float a, Value b) { return pointwise("divide", {b}, a / x0()); }
Value operator-(Value a) { return pointwise("negate", {a}, -x0(), type_with(a, a)); }

Value relu(Value x) { return pointwise("relu", {x}, scalar::max(x0(), 0.0F)); }

Value leaky_relu(Value x, float negative_slope) {
  return pointwise("leaky_relu", {x}, scalar::select(scalar::less(0.0F, x0()), x0(), x0() * negative_slope));
}

Value elu(Value x, float alpha) {
  return pointwise("elu", {x}, scalar::select(scalar::less(0.0F, x0()), x0(), alpha * scalar::expm1(x0())));
}

Value sigmoid(Value x) { return pointwise("sigmoid", {x}, scalar::sigmoid(x0())); }

Value tanh(Value x) { return pointwise("tanh", {x}, scalar::tanh(x0())); }

Value silu(Value x) { return pointwise("silu", {x}, scalar::silu(x0())); }

Value gelu(Value x) { return pointwise("gelu", {x}, scalar::gelu(x0())); }

Value gelu_tanh(Value x) { return pointwise("gelu_tanh", {x}, scalar::gelu_tanh(x0())); }

Value softplus(Value x) { return pointwise("softplus", {x}, scalar::softplus(x0())); }

Value hard_sigmoid(Value x) {
  const Scalar inside = (x0() + 3.0F) / 6.0F;
  return pointwise("hard_sigmoid", {x},
                   scalar::select(scalar::less_equal(x0(), -3.0F), 0.0F,
                                  scalar::select(scalar::less_equal(3.0F, x0()), 1.0F, inside)));
}

Value hard_swish(Value x) {
  const Scalar inside = x0() * (x0() + 3.0F) / 6.0F;
  return pointwise("hard_swish", {x},
                   scalar::select(scalar::less_equal(x0(), -3.0F), 0.0F,
                                  scalar::select(scalar::less_equal(3.0F, x0()), x0(), inside)));
}

Value exp(Value x) { return pointwise("exp", {x}, scalar::exp(x0())); }
Value log(Value x) { return pointwise("log", {x}, scalar::log(x0())); }
Value sqrt(Value x) { return pointwise("sqrt", {x}, scalar::sqrt(x0())); }
Value abs(Value x) { return pointwise("abs", {x}, scalar::abs(x0()), type_with(x, x)); }
Value square(Value x) { return pointwise("square", {x}, x0() * x0(), type_with(x, x)); }

Value clamp(Value x, float low, float high) {
  return pointwise("clamp", {x},
                   scalar::select(scalar::less(x0(), low), low, scalar::select(scalar::less(high, x0()), high, x0())));
}

Value minimum(Value a, Value b) { return pointwise("minimum", {a, b}, scalar::min(x0(), x1()), type_with(a, b)); }
Value maximum(Value a, Value b) { return pointwise("maximum", {a, b}, scalar::max(x0(), x1()), type_with(a, b)); }

Value where(Value condition, Value a, Value b) {
  return pointwise("where", {condition, a, b}, scalar::select(x0(), x1(), scalar::input(2)), type_with(a, b));
}

}  // namespace concord
