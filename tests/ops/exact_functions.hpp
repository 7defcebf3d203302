// Functions, activations and losses of a logit with their derivatives in double precision, for the tests of accuracy.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "concord/ops/accuracy.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

using D = double;

/// Of SELU.
inline constexpr D kSelu = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;

/// A function of one number: as an operator, or as the scalar function of its name.
struct ExactFunction {
  using Right = std::function<D(D)>;
  std::string_view name;
  Value (*build)(Value);  // null: the scalar function
  Right value, slope;
  Right curve = nullptr;
  bool is_loss = false;
};

/// All of them: those that are written out, and the other scalar functions of one number, whose derivatives are right
/// (tests/ops/scalar_functions.cpp), so that their formulas in double precision say what they should be.
[[nodiscard]] std::vector<ExactFunction> exact_functions();

/// The bounds of the function of this name.
[[nodiscard]] const FunctionAccuracy& accuracy_of(std::string_view name);

}  // namespace concord::test
