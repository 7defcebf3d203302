// How the operands of a product in tiles are read: by fours or one by one, and the tables of an image's patches as
// arguments. Used by the implementations that multiply in tiles, planes and tuning_key.
#pragma once

#include <initializer_list>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Whether all are multiples of 4.
[[nodiscard]] bool in_fours(std::initializer_list<std::int64_t> values);

/// Whether four neighbours of the left operand are adjacent in memory, aligned, and in range together.
[[nodiscard]] bool left_in_fours(const Gemm& gemm);

/// The right operand as the kernels with gemm/element.h take it.
struct RightOperand {
  std::vector<Argument> arguments;  // TABLE_PARAMETERS
  bool fours = false;               // four neighbours are adjacent in memory, aligned, and in range together
};
/// gemm.b must be no patch, or have tables (patch_tables).
[[nodiscard]] RightOperand right_operand(Context& context, const Gemm& gemm);

}  // namespace concord::opencl
