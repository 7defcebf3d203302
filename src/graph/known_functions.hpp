// Finds formulas that are a function of the table written out: x·sigmoid(x) is silu(x). ops/known_functions asks for
// what was built of several operators.
#pragma once

#include <optional>

#include "concord/graph/expression.hpp"

namespace concord {

struct KnownFunction {
  ScalarFunction function;
  std::int32_t argument;  // the instruction that computes it
};

/// The function of one argument that instruction `result` computes, if it is one of these, with sums and products in
/// any order and constants right to 1e-6:
///   silu        x·sigmoid(x)
///   normal_cdf  (1 + erf(x/√2))/2
///   gelu        x·(1 + erf(x/√2))/2 = x·normal_cdf(x)
///   gelu_tanh   x·(1 + tanh(u))/2 = x·sigmoid(2u) with u = √(2/π)·(x + 0.044715·x³)
/// The functions are exact where the formulas cancel or overflow.
[[nodiscard]] std::optional<KnownFunction> known_function(std::span<const Expression::Instruction> code,
                                                          std::int32_t result);

/// Whether a formula with this function in it may be a known one.
[[nodiscard]] bool is_gate(ScalarFunction function);

}  // namespace concord
