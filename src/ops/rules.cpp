// Argument checks and graph look-ups shared by the operator families.
#include "concord/ops/rules.hpp"

#include "concord/core/check.hpp"

namespace concord::ops {

void expect_inputs(std::string_view op, std::span<const TensorSpec> inputs, std::size_t count) {
  CONCORD_CHECK(inputs.size() == count, ShapeError, "{}: needs {} operands, got {} ({})", op, count, inputs.size(),
                shapes_of(inputs));
}

void expect_type(std::string_view op, std::string_view role, const TensorSpec& spec, DType type) {
  CONCORD_CHECK(spec.dtype == type, ShapeError, "{}: {} must be {}, got {}", op, role, name_of(type), spec.str());
}

void expect_spec(std::string_view op, std::string_view role, const TensorSpec& spec, DType type, const Shape& shape) {
  const TensorSpec wanted{type, shape};
  CONCORD_CHECK(spec == wanted, ShapeError, "{}: {} must be {}, got {}", op, role, wanted.str(), spec.str());
}

void expect_not_empty(std::string_view op, std::string_view role, const Shape& shape) {
  CONCORD_CHECK(shape.elements() > 0, ShapeError, "{}: {} {} is empty; every dimension must be at least 1", op, role,
                shape.str());
}

std::string shapes_of(std::span<const TensorSpec> inputs) {
  std::string text;
  for (const TensorSpec& input : inputs) {
    if (!text.empty()) text += ", ";
    text += input.shape.str();
  }
  return text;
}

Value output_of(const Node& node, std::int32_t index) {
  const Value first = node.inputs.front().graph().find(node.name);
  return {&first.graph(), first.node_id(), index};
}

std::vector<Value> no_gradients(const Node& node) { return std::vector<Value>(node.inputs.size()); }

const Scalar& x0() {
  static const Scalar x = scalar::input(0);
  return x;
}

const Scalar& x1() {
  static const Scalar x = scalar::input(1);
  return x;
}

}  // namespace concord::ops
