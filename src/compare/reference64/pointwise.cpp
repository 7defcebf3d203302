// Pointwise expressions: the instructions of Expression in double precision, over broadcast operands.
#include "concord/ops/pointwise.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"
#include "concord/core/parallel.hpp"
#include "concord/graph/scalar_functions.hpp"

namespace concord::float64 {
namespace {

using F = ScalarFunction;

/// Where an operand's element lies for an element of the output.
class Broadcast {
 public:
  Broadcast(const Shape& operand, const Shape& output) : dims_(output.dims().begin(), output.dims().end()) {
    const auto own = operand.strides();
    const std::size_t missing = dims_.size() - own.size();
    strides_.assign(dims_.size(), 0);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (operand.dims()[i] != 1) strides_[missing + i] = own[i];
    }
  }
  [[nodiscard]] std::size_t place(std::size_t element) const {
    std::int64_t rest = static_cast<std::int64_t>(element), place = 0;
    for (std::size_t i = dims_.size(); i-- > 0;) {
      place += rest % dims_[i] * strides_[i];
      rest /= dims_[i];
    }
    return static_cast<std::size_t>(place);
  }

 private:
  std::vector<std::int64_t> dims_, strides_;
};

double coordinate(std::size_t element, const Shape& output, std::int32_t axis_from_last) {
  auto rest = static_cast<std::int64_t>(element);
  const auto dims = output.dims();
  for (std::int32_t i = 0; i < axis_from_last; ++i) rest /= dims[dims.size() - 1 - static_cast<std::size_t>(i)];
  const auto axis = dims.size() - 1 - static_cast<std::size_t>(axis_from_last);
  return static_cast<double>(rest % dims[axis]);
}

}  // namespace

std::vector<Values> values_of(const Expression& expression, std::span<const Numbers> operands, const Shape& output) {
  std::vector<Values> results(expression.results().size(), Values(static_cast<std::size_t>(output.elements())));
  std::vector<Broadcast> places;
  for (const Numbers& operand : operands) places.emplace_back(operand.shape, output);
  const auto code = expression.code();
  const auto value_of = [&](const Expression::Instruction& one, std::size_t element, const Values& values) -> double {
    const auto index = static_cast<std::size_t>(one.index);
    switch (one.function) {
      case F::input: return operands[index].values[places[index].place(element)];
      case F::constant: return one.value;
      case F::coordinate: return coordinate(element, output, one.index);
      default: break;
    }
    double arguments[3] = {0, 0, 0};
    for (std::size_t i = 0; i < 3; ++i) {
      if (one.arguments[i] >= 0) arguments[i] = values[static_cast<std::size_t>(one.arguments[i])];
    }
    return evaluate_exactly(one.function, arguments);
  };
  for_blocks(results[0].size(), [&](std::size_t, std::size_t first, std::size_t count) {
    Values values(code.size());
    for (std::size_t element = first; element < first + count; ++element) {
      for (std::size_t i = 0; i < code.size(); ++i) values[i] = value_of(code[i], element, values);
      for (std::size_t k = 0; k < results.size(); ++k) {
        results[k][element] = values[static_cast<std::size_t>(expression.results()[k])];
      }
    }
  });
  return results;
}

Results pointwise(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Pointwise*>(node.op);
  if (op == nullptr) return {};
  std::vector<Numbers> operands;
  for (const Tensor& input : node.inputs) operands.push_back({doubles(input), input.shape()});
  return values_of(op->expression(), operands, node.results[0].shape());
}

}  // namespace concord::float64
