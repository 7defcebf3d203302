// Matrices of a graph whose numbers are known: constants, parameters, and formulas of them. Internal to the room.
#pragma once

#include <optional>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/graph/graph.hpp"

namespace concord::onnx {

class ConstantMatrix {
 public:
  /// `value` (1, …, rows, columns); nothing if it depends on an input or has another size.
  [[nodiscard]] static std::optional<ConstantMatrix> of(const Value& value, std::int64_t rows, std::int64_t columns);

  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const;

 private:
  ConstantMatrix(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}
  std::optional<Scalar> formula_of(const Value& value);

  std::int64_t rows_, columns_;
  std::vector<Tensor> leaves_;
  Expression expression_;
};

}  // namespace concord::onnx
