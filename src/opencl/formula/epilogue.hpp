// Epilogues: what a kernel applies to each value before it writes it, and its text for products.
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

/// An epilogue printed for a kernel family (gemm_epilogue): `text` goes in front of the kernel file's text
/// (Context::program_from) and defines what the file asks for; `arguments` go to the end of Stage::arguments.
struct EpilogueText {
  std::string text;
  std::vector<Argument> arguments;
  /// Buffers that it reads.
  [[nodiscard]] std::int64_t operands() const {
    return std::ranges::count_if(arguments,
                                 [](const Argument& one) { return std::holds_alternative<BufferArgument>(one); });
  }
};

/// Input `input` of the request as operand of an epilogue: its strides along z, m, the block of n and the place in it.
struct EpilogueOperand {
  std::size_t input;
  DType dtype;
  std::int64_t z, m, outer, inner;
};
/// The text and arguments that apply `expression` (input 0 is the product's value) in a GEMM kernel.
[[nodiscard]] EpilogueText gemm_epilogue(const Expression& expression, std::span<const EpilogueOperand> extra);

}  // namespace concord::opencl
