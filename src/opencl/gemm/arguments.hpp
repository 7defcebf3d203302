// The definitions, arguments, programs and stages of a matrix multiplication for the kernel files that include
// gemm/operands.h. Used by every GEMM implementation.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

[[nodiscard]] std::vector<std::string> gemm_definitions(const Gemm& gemm);
/// GEMM_MEMORIES, GEMM_NUMBERS and `extra` as packed arguments, and the epilogue's arguments. When k is split into
/// `parts` of `k_part`, C is the workspace and the kernel applies no epilogue: gemm_combine follows.
[[nodiscard]] std::vector<Argument> gemm_arguments(const Gemm& gemm, std::int64_t parts, std::int64_t k_part,
                                                   const std::vector<Argument>& extra = {});
/// What GEMM_A_NUMBERS and GEMM_C_NUMBERS are of, for a list of packed arguments, and the definition of their index
/// type.
[[nodiscard]] std::vector<Argument> gemm_left_arguments(const Gemm& gemm);
[[nodiscard]] std::vector<Argument> gemm_result_arguments(const Gemm& gemm);
[[nodiscard]] std::string gemm_index_definition(const Gemm& gemm);
/// The program of a kernel file with the definitions of the matrix multiplication and, optionally, its epilogue.
[[nodiscard]] PendingProgram gemm_program(Context& context, const Gemm& gemm, std::string_view file, bool with_epilogue,
                                          std::vector<std::string> definitions);
/// The stage that adds up the parts of a split k, and the workspace size with these parts.
[[nodiscard]] Stage gemm_combine_stage(Context& context, const Gemm& gemm, std::int64_t parts);
[[nodiscard]] std::size_t gemm_workspace(const Gemm& gemm, std::int64_t parts);

/// The kernel that runs gemm.before, then `multiply`, which cuts k into `parts`, then adds the parts up.
[[nodiscard]] std::unique_ptr<Kernel> gemm_staged(Context& context, const Gemm& gemm, std::string name, Stage multiply,
                                                  std::int64_t parts);

}  // namespace concord::opencl
