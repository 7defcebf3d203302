// Pointwise: applies one expression to broadcast operands. Activations, arithmetic, loss terms and optimizer updates
// are pointwise operators; compile/fuse merges chains of them into one.
#pragma once

#include <concepts>
#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Has one output for each result of the expression, of type outputs[k]. The output shape is the broadcast of the
/// inputs and `at_least`. Inputs of every type are read as float. Integer outputs are as `cast` makes them.
/// `slope`: the derivative of a function of one input in terms of its result, input 0, for functions whose formula has
/// no such derivative. The gradient does not need the function's input then.
/// `surrogate`: a formula with the values of the first result, whose derivative is taken instead of that of the
/// expression. It is for a formula that is constant at some points and not beside them.
class Pointwise final : public Operator {
 public:
  Pointwise(Expression expression, std::vector<DType> types, std::string label, Shape at_least = {},
            std::optional<Scalar> slope = {}, std::optional<Scalar> surrogate = {})
      : expression_(std::move(expression)),
        types_(std::move(types)),
        label_(std::move(label)),
        at_least_(std::move(at_least)),
        slope_(std::move(slope)),
        surrogate_(std::move(surrogate)) {}
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  /// True for every pair, because an element is read before it is written. The planner checks that the sizes are equal.
  [[nodiscard]] bool in_place(std::size_t, std::size_t) const override { return true; }

  [[nodiscard]] const Expression& expression() const { return expression_; }
  [[nodiscard]] const std::vector<DType>& types() const { return types_; }
  [[nodiscard]] const Shape& at_least() const { return at_least_; }

 private:
  Expression expression_;
  std::vector<DType> types_;
  std::string label_;  // "relu", "add", "sgd": only for names and traces
  Shape at_least_;     // broadcast with the shapes of the inputs
  std::optional<Scalar> slope_, surrogate_;
};

/// The arithmetic operations per element: every instruction except operands, constants and coordinates.
[[nodiscard]] double operations(const Expression& expression);

}  // namespace ops

/// Applies one formula to broadcast values: `pointwise("silu", {x}, x0 * scalar::sigmoid(x0))`. `at_least` enlarges the
/// output, for example to fill a shape with a scalar. Where formula and pointwise operators before it are silu or gelu
/// written out, the result is that function: x * sigmoid(x) is silu(x). Throws ShapeError if the shapes do not
/// broadcast.
Value pointwise(std::string label, std::vector<Value> inputs, const Scalar& formula, DType type = DType::f32,
                Shape at_least = {});
/// A function of one value, whose derivative is `slope` of its result: input 0.
Value pointwise_by_result(std::string label, Value x, const Scalar& formula, const Scalar& slope);
/// A formula whose derivative is that of `surrogate`, a formula with the same values.
Value pointwise_with_surrogate(std::string label, std::vector<Value> inputs, const Scalar& formula,
                               const Scalar& surrogate);
/// Applies several formulas to the same values in one operator.
std::vector<Value> pointwise(std::string label, std::vector<Value> inputs, std::vector<Scalar> formulas,
                             std::vector<DType> types, Shape at_least = {});

/// A tensor with the same value in each element.
Value full(Graph& graph, Shape shape, float value);
/// 0, 1, … n-1 as i32 [n].
Value iota(Graph& graph, std::int64_t n);
/// To an integer type it rounds toward 0 and limits the result to the range of the type. NaN becomes the least number
/// of the type on every device: for i32 it is -2147483648, an index that lies outside every table.
Value cast(Value x, DType type);

// Integers (i32, u8): +, −, ×, minimum, maximum, where, abs and square give i32, as in PyTorch (except u8, which wraps
// around in PyTorch). They are computed in float, which is exact up to 2^24. A quotient is f32, and so is a result with
// a float operand. A C++ integer counts as an integer: i32 + 1 is i32, i32 + 1.0F is f32.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator+(Value a, float b);
Value operator-(Value a, float b);
Value operator*(Value a, float b);
Value operator/(Value a, float b);
Value operator+(float a, Value b);
Value operator-(float a, Value b);
Value operator*(float a, Value b);
Value operator/(float a, Value b);
Value operator-(Value a);

namespace ops {
/// Converts `result` to i32 if `operand` has an integer type.
[[nodiscard]] Value whole_as(Value result, Value operand);
}  // namespace ops
template <std::integral T>
Value operator+(Value a, T b) {
  return ops::whole_as(a + static_cast<float>(b), a);
}
template <std::integral T>
Value operator-(Value a, T b) {
  return ops::whole_as(a - static_cast<float>(b), a);
}
template <std::integral T>
Value operator*(Value a, T b) {
  return ops::whole_as(a * static_cast<float>(b), a);
}
template <std::integral T>
Value operator+(T a, Value b) {
  return ops::whole_as(static_cast<float>(a) + b, b);
}
template <std::integral T>
Value operator-(T a, Value b) {
  return ops::whole_as(static_cast<float>(a) - b, b);
}
template <std::integral T>
Value operator*(T a, Value b) {
  return ops::whole_as(static_cast<float>(a) * b, b);
}

// Elementwise activations and functions, as PyTorch defines them.
Value relu(Value x);
Value leaky_relu(Value x, float negative_slope = 0.01F);
Value elu(Value x, float alpha = 1.0F);
Value sigmoid(Value x);
Value tanh(Value x);
Value silu(Value x);
/// x·Φ(x) (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016).
Value gelu(Value x);
/// The tanh approximation of the same paper.
Value gelu_tanh(Value x);
Value softplus(Value x);
/// clamp(x/6 + 1/2, 0, 1) (Howard et al., "Searching for MobileNetV3", 2019).
Value hard_sigmoid(Value x);
Value hard_swish(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value abs(Value x);
Value square(Value x);
/// f32. With bounds that are C++ integers, the clamp of integers is i32, as in PyTorch.
Value clamp(Value x, float low, float high);
template <std::integral T>
Value clamp(Value x, T low, T high) {
  return ops::whole_as(clamp(x, static_cast<float>(low), static_cast<float>(high)), x);
}
Value minimum(Value a, Value b);
Value maximum(Value a, Value b);
/// a if condition != 0, else b.
Value where(Value condition, Value a, Value b);

}  // namespace concord
