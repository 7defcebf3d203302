// Which formulas are affine: epilogues of sums, whose roundings these make larger only by a factor.
#pragma once

#include <vector>

#include "concord/graph/expression.hpp"

namespace concord::opencl {

/// Whether the only result of `expression` is a·x + b, where x is input 0, and a and b depend on other inputs alone.
[[nodiscard]] inline bool is_affine(const Expression& expression) {
  using F = ScalarFunction;
  std::vector<bool> depends;  // of each instruction, on input 0
  for (const Expression::Instruction& one : expression.code()) {
    const auto of = [&](std::size_t k) {
      return one.arguments[k] >= 0 && depends[static_cast<std::size_t>(one.arguments[k])];
    };
    const bool any = of(0) || of(1) || of(2);
    bool is_kept = one.function == F::add || one.function == F::subtract || one.function == F::negate;
    is_kept = is_kept || (one.function == F::multiply && !(of(0) && of(1)));
    is_kept = is_kept || (one.function == F::divide && !of(1)) || (one.function == F::select && !of(0));
    if (any && !is_kept) return false;
    depends.push_back(any || (one.function == F::input && one.index == 0));
  }
  return expression.results().size() == 1;
}

}  // namespace concord::opencl
