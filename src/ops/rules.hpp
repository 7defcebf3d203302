// What the shape and gradient rules of all operator families share: argument checks whose messages name the operator,
// the operand, what was expected and what came; and the way from a node to its own outputs. Internal to ops/.
#pragma once

#include <string_view>

#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Throws ShapeError unless there are `count` inputs.
void expect_inputs(std::string_view op, std::span<const TensorSpec> inputs, std::size_t count);
/// Throws ShapeError unless operand `role` has this type.
void expect_type(std::string_view op, std::string_view role, const TensorSpec& spec, DType type);
/// Throws ShapeError unless operand `role` is `type` of this shape.
void expect_spec(std::string_view op, std::string_view role, const TensorSpec& spec, DType type, const Shape& shape);
/// Throws ShapeError when a dimension of operand `role` is 0: an empty batch has no gradient.
void expect_not_empty(std::string_view op, std::string_view role, const Shape& shape);

/// The shapes of all operands, for messages: "[2, 3], [4]".
[[nodiscard]] std::string shapes_of(std::span<const TensorSpec> inputs);

/// Output `index` of `node`, which has at least one input.
[[nodiscard]] Value output_of(const Node& node, std::int32_t index);
/// No gradients: one empty Value an input.
[[nodiscard]] std::vector<Value> no_gradients(const Node& node);

/// The first and the second operand of a formula.
[[nodiscard]] const Scalar& x0();
[[nodiscard]] const Scalar& x1();

}  // namespace concord::ops
