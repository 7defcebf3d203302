// Pointwise operators of ONNX: see pointwise_call.hpp.
#include "concord/onnx/operators/pointwise_call.hpp"

#include <cmath>

#include "concord/core/check.hpp"

namespace concord::onnx {

Dims pointwise_dims(const Call& call, const std::vector<std::size_t>& operands) {
  Dims dims;
  for (const std::size_t i : operands) dims = broadcast_dims(dims, call.dims(i));
  return dims;
}

Value pointwise_value(const Call& call, const std::string& label, const std::vector<std::size_t>& operands,
                      const ScalarFormula& formula, DType type) {
  std::vector<Value> values;
  std::vector<Scalar> scalars;
  for (const std::size_t i : operands) {
    if (call.is_constant_number(i)) {
      const double number = call.number(i);
      const bool is_exact = is_floating(call.type(i)) || std::abs(number) <= 0x1p24;
      if (is_exact && std::isfinite(number)) {  // a kernel's text has no infinite numbers
        scalars.emplace_back(static_cast<float>(number));
        continue;
      }
    }
    scalars.push_back(scalar::input(static_cast<int>(values.size())));
    values.push_back(call.value(i));
  }
  const Shape shape(pointwise_dims(call, operands));
  if (values.empty()) values.push_back(full(call.graph(), Shape{}, 0));  // a graph for the formula
  return pointwise(label, values, formula(scalars), type, shape);
}

void set_pointwise(Call& call, const std::string& label, const std::vector<std::size_t>& operands,
                   const ScalarFormula& formula, ElementType type) {
  Dims dims = pointwise_dims(call, operands);
  if (elements_of(dims) == 0) return call.set_empty(0, type, std::move(dims));
  call.set(0, pointwise_value(call, label, operands, formula, dtype_of(type)), type);
}

void align_second_operand(Call& call) {
  if (call.opset() >= 7 || call.integer("broadcast", 0) == 0 || call.rank(1) >= call.rank(0)) return;
  const auto first = static_cast<std::int64_t>(call.rank(0)), second = static_cast<std::int64_t>(call.rank(1));
  const std::int64_t axis = call.integer("axis", first - second);
  Dims dims = call.dims(1);
  const std::int64_t after = first - (axis < 0 ? axis + first : axis) - second;
  CONCORD_CHECK(after >= 0, ShapeError, "axis {} leaves too few dimensions", axis);
  dims.insert(dims.end(), static_cast<std::size_t>(after), 1);
  call.reshape_operand(1, std::move(dims));
}

Scalar sign_of(const Scalar& a) { return scalar::less(0.0F, a) - scalar::less(a, 0.0F); }

Scalar truncated(const Scalar& a) {
  return scalar::select(scalar::less(a, 0.0F), -scalar::floor(-a), scalar::floor(a));
}

Scalar whole_quotient(const Scalar& a, const Scalar& b) {
  const Scalar size = scalar::abs(a), part = scalar::abs(b), rough = scalar::floor(size / part);
  const Scalar rest = size - rough * part;  // exact; a device's division may be some ULP off
  const Scalar more = scalar::less_equal(part, rest) + scalar::less_equal(2.0F * part, rest);
  const Scalar less = scalar::less(rest, 0.0F) + scalar::less(rest, -part);
  return sign_of(a) * sign_of(b) * (rough + more - less);
}

int narrow_bits(ElementType type) {
  if (type == ElementType::u8 || type == ElementType::i8) return 8;
  return type == ElementType::u16 || type == ElementType::i16 ? 16 : 0;
}

bool is_signed(ElementType type) { return type != ElementType::u8 && type != ElementType::u16; }

// Exact, since a power of two only scales.
Scalar wrapped_to(const Scalar& number, ElementType type) {
  const auto range = static_cast<float>(1 << narrow_bits(type));
  const Scalar low = number - range * scalar::floor(number * (1 / range));
  return is_signed(type) ? scalar::select(scalar::less(low, range / 2), low, low - range) : low;
}

Scalar whole_root(const Scalar& a) {
  const Scalar nearest = scalar::rint(scalar::sqrt(a));
  return nearest - scalar::less(a, nearest * nearest);
}

}  // namespace concord::onnx
