// Elementary functions: one formula each.
#include "concord/ops/elementary.hpp"

#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace {

using ops::x0;
using ops::x1;

bool is_whole(const Value& x) { return x.dtype() == DType::i32 || x.dtype() == DType::u8; }

Value to_whole(const char* name, Value x, const Scalar& formula) {
  return is_whole(x) ? x : pointwise(name, {x}, formula);
}

}  // namespace

Value exp2(Value x) { return pointwise("exp2", {x}, scalar::power(2.0F, x0())); }
Value expm1(Value x) { return pointwise("expm1", {x}, scalar::expm1(x0())); }
Value log1p(Value x) { return pointwise("log1p", {x}, scalar::log1p(x0())); }
Value log2(Value x) { return pointwise("log2", {x}, scalar::log2(x0())); }
Value log10(Value x) { return pointwise("log10", {x}, scalar::log(x0()) * 0.434294481903251828F); }
Value rsqrt(Value x) { return pointwise("rsqrt", {x}, scalar::rsqrt(x0())); }
Value reciprocal(Value x) { return pointwise("reciprocal", {x}, 1.0F / x0()); }
Value erf(Value x) { return pointwise("erf", {x}, scalar::erf(x0())); }

Value sin(Value x) { return pointwise("sin", {x}, scalar::sin(x0())); }
Value cos(Value x) { return pointwise("cos", {x}, scalar::cos(x0())); }
Value tan(Value x) { return pointwise("tan", {x}, scalar::sin(x0()) / scalar::cos(x0())); }
Value asin(Value x) { return pointwise("asin", {x}, scalar::asin(x0())); }
Value acos(Value x) { return pointwise("acos", {x}, scalar::acos(x0())); }
Value atan(Value x) { return pointwise("atan", {x}, scalar::atan(x0())); }
Value atan2(Value y, Value x) { return pointwise("atan2", {y, x}, scalar::atan2(x0(), x1())); }
Value sinh(Value x) { return pointwise("sinh", {x}, scalar::sinh(x0())); }
Value cosh(Value x) { return pointwise("cosh", {x}, scalar::cosh(x0())); }
Value asinh(Value x) { return pointwise("asinh", {x}, scalar::asinh(x0())); }
Value acosh(Value x) { return pointwise("acosh", {x}, scalar::acosh(x0())); }
Value atanh(Value x) { return pointwise("atanh", {x}, scalar::atanh(x0())); }

Value floor(Value x) { return to_whole("floor", x, scalar::floor(x0())); }
Value ceil(Value x) { return to_whole("ceil", x, -scalar::floor(-x0())); }
Value round(Value x) { return to_whole("round", x, scalar::rint(x0())); }
Value trunc(Value x) {
  return to_whole("trunc", x, scalar::select(scalar::less(x0(), 0.0F), -scalar::floor(-x0()), scalar::floor(x0())));
}
Value sign(Value x) {
  return pointwise("sign", {x}, scalar::less(0.0F, x0()) - scalar::less(x0(), 0.0F),
                   is_whole(x) ? DType::i32 : DType::f32);
}

Value pow(Value x, float exponent) { return pointwise("pow", {x}, scalar::power(x0(), exponent)); }
Value pow(Value x, Value exponent) { return pointwise("pow", {x, exponent}, scalar::power(x0(), x1())); }

}  // namespace concord
