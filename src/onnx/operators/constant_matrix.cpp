// The pointwise operators that lead to a matrix as one formula of the tensors that they begin with.
#include "concord/onnx/operators/constant_matrix.hpp"

#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

float number_of(const Tensor& tensor, std::size_t i) {
  switch (tensor.dtype()) {
    case DType::f32: return tensor.values<float>()[i];
    case DType::u8: return static_cast<float>(tensor.values<std::uint8_t>()[i]);
    default: return static_cast<float>(tensor.values<std::int32_t>()[i]);
  }
}

}  // namespace

std::optional<ConstantMatrix> ConstantMatrix::of(const Value& value, std::int64_t rows, std::int64_t columns) {
  ConstantMatrix matrix(rows, columns);
  auto formula = matrix.formula_of(value);
  if (!formula || matrix.leaves_.empty()) return std::nullopt;
  matrix.expression_ = Expression({*std::move(formula)}, static_cast<int>(matrix.leaves_.size()));
  return matrix;
}

std::optional<Scalar> ConstantMatrix::formula_of(const Value& value) {
  constexpr std::size_t kMostLeaves = 4;
  const Node& node = value.node();
  const Shape& shape = value.shape();
  const auto* op = dynamic_cast<const ops::Pointwise*>(node.op.get());
  const bool is_number = op != nullptr && op->expression().inputs() == 0 && !op->expression().uses_coordinates();
  if (is_number) return op->expression().formulas()[0];
  const bool fits = shape.rank() >= 2 && shape[-2] == rows_ && shape[-1] == columns_ &&
                    shape.elements() == rows_ * columns_ && node.outputs.size() == 1;
  if (!fits || leaves_.size() >= kMostLeaves) return std::nullopt;
  if (node.variable) {
    if (node.variable->value.elements() != shape.elements()) return std::nullopt;
    leaves_.push_back(node.variable->value);
    return scalar::input(static_cast<int>(leaves_.size()) - 1);
  }
  if (dynamic_cast<const ops::Reshape*>(node.op.get()) != nullptr) return formula_of(node.inputs[0]);
  if (op == nullptr || op->expression().code().size() > 16) return std::nullopt;
  std::vector<Scalar> operands;
  for (const Value& input : node.inputs) {
    auto formula = formula_of(input);
    if (!formula) return std::nullopt;
    operands.push_back(*std::move(formula));
  }
  const Scalar formula = substitute(op->expression().formulas()[0], operands);
  return op->types()[0] == DType::f32 ? formula : truncated(formula);
}

float ConstantMatrix::at(std::int64_t row, std::int64_t column) const {
  std::vector<float> numbers;
  for (const Tensor& leaf : leaves_)
    numbers.push_back(number_of(leaf, static_cast<std::size_t>(row * columns_ + column)));
  const std::int64_t coordinates[Shape::kMaxRank] = {column, row};
  return expression_.evaluate(0, numbers, coordinates);
}

}  // namespace concord::onnx
