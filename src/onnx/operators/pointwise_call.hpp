// Pointwise operators of ONNX: one formula over broadcast operands, in the graph or on the host. Internal to the room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/onnx/call.hpp"

namespace concord::onnx {

using ScalarFormula = std::function<Scalar(const std::vector<Scalar>& operands)>;

/// Applies the formula to the operands at these positions. A single constant number becomes part of the formula.
[[nodiscard]] Value pointwise_value(const Call& call, const std::string& label,
                                    const std::vector<std::size_t>& operands, const ScalarFormula& formula, DType type);
/// Sets result 0: pointwise_value, or nothing but the shape if it has no element.
void set_pointwise(Call& call, const std::string& label, const std::vector<std::size_t>& operands,
                   const ScalarFormula& formula, ElementType type);
/// The shape of a pointwise result.
[[nodiscard]] Dims pointwise_dims(const Call& call, const std::vector<std::size_t>& operands);

/// Before version 7, with the attribute `broadcast`, the dimensions of the second operand begin at `axis`.
void align_second_operand(Call& call);

/// ⌊|a|/|b|⌋ with the sign of a/b, for whole numbers below 2^24: exact whatever the rounding of a device's division.
[[nodiscard]] Scalar whole_quotient(const Scalar& a, const Scalar& b);
/// ⌊√a⌋ for whole numbers up to 2^24, likewise exact.
[[nodiscard]] Scalar whole_root(const Scalar& a);
/// The bits of an integer type of at most 16; 0 for others.
[[nodiscard]] int narrow_bits(ElementType type);
[[nodiscard]] bool is_signed(ElementType type);
/// The low bits of a whole number up to 2^24, as a number of this type of at most 16 bits.
[[nodiscard]] Scalar wrapped_to(const Scalar& number, ElementType type);
[[nodiscard]] Scalar sign_of(const Scalar& a);
[[nodiscard]] Scalar truncated(const Scalar& a);
[[nodiscard]] inline Scalar logical_not(const Scalar& a) { return scalar::equal(a, 0.0F); }

/// Applies `function` to x as f32 and gives the result x's type: for operators that take f32 alone. Exact up to 2^24.
template <class Function>
[[nodiscard]] Value through_f32(const Value& x, Function&& function);

}  // namespace concord::onnx

#include "concord/ops/pointwise.hpp"

template <class Function>
concord::Value concord::onnx::through_f32(const Value& x, Function&& function) {
  if (x.dtype() == DType::f32) return function(x);
  return cast(function(cast(x, DType::f32)), x.dtype());
}
