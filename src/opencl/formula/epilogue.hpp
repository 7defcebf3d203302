// Epilogues and prologues: expressions that a kernel applies to each value before it writes the value, or as it reads
// it, and the text of epilogues for GEMM kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// An expression that a kernel applies to each value before it writes it. Input 0 is that value; input 1 + j is
/// request.inputs[first_extra + j], broadcast to the output.
struct Epilogue {
  const Expression& expression;
  std::size_t first_extra;
};

/// An expression that a kernel applies to each value of request.inputs[0] as it reads it. Input 0 is that value; input
/// 1 + j is request.inputs[first_extra + j], broadcast to request.inputs[0].
struct Prologue {
  const Expression& expression;
  std::size_t first_extra;
};

/// An epilogue or a prologue printed for a kernel family (gemm_epilogue, block_epilogue). `text` precedes the text of
/// the kernel file (Context::program_from) and defines the macros that the file uses; `arguments` go to the end of
/// Stage::arguments.
struct EpilogueText {
  std::string text;
  std::vector<Argument> arguments;
  /// Of gemm_epilogue: how many of these buffers are matrices as large as the result; the others, such as vectors by
  /// row, stay in caches.
  std::int64_t whole_operands = 0;
  /// The number of buffers that the epilogue reads.
  [[nodiscard]] std::int64_t operands() const {
    return std::ranges::count_if(arguments,
                                 [](const Argument& one) { return std::holds_alternative<BufferArgument>(one); });
  }
};

/// Input `input` of the request as an operand of an epilogue: its strides along z, along m, from block to block of n,
/// and within a block.
struct EpilogueOperand {
  std::size_t input;
  DType dtype;
  std::int64_t z, m, outer, inner;
};
/// The text and arguments that apply `expression` in a GEMM kernel; input 0 is the value of the matrix multiplication.
[[nodiscard]] EpilogueText gemm_epilogue(const Expression& expression, std::span<const EpilogueOperand> extra);

}  // namespace concord::opencl
