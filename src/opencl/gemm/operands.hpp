// How tiled GEMM kernels read their operands: four elements at once or one by one, and an image's patches through
// tables passed as arguments. Used by the tiled implementations and by tuning_key.
#pragma once

#include <initializer_list>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Whether all are multiples of 4.
[[nodiscard]] bool in_fours(std::initializer_list<std::int64_t> values);

/// Whether four consecutive elements of the left operand are adjacent in memory, aligned, and in range together.
[[nodiscard]] bool left_in_fours(const Gemm& gemm);
/// The same of a right operand that is no patch.
[[nodiscard]] bool right_in_fours(const Gemm& gemm);

/// The right operand as kernels with gemm/element.h receive it.
struct RightOperand {
  std::vector<Argument> arguments;  // tables and TABLE_NUMBERS
  bool fours = false;               // as left_in_fours, of the right operand
};
/// gemm.b must not be a patch, or must have tables (patch_tables).
[[nodiscard]] RightOperand right_operand(Context& context, const Gemm& gemm);

}  // namespace concord::opencl
