// Finds functions that were built of several pointwise operators. Internal to ops/.
#pragma once

#include <optional>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/graph/graph.hpp"

namespace concord::ops {

struct KnownFunctionOf {
  ScalarFunction function;
  Value argument;
  std::vector<Value> joined;  // what lies between the argument and the result
};

/// The expression of the pointwise operator that computes a value; null for others.
using ExpressionOf = const Expression* (*)(const Value& value);

/// The function of one value that `formula` of `inputs` computes together with the pointwise operators before it, as in
/// x·sigmoid(x) (graph/known_functions.hpp lists them). `at_least` is as in `pointwise`.
[[nodiscard]] std::optional<KnownFunctionOf> known_function_of(const std::vector<Value>& inputs, const Scalar& formula,
                                                               const Shape& at_least, ExpressionOf expression_of);

}  // namespace concord::ops
