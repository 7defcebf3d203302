// Expressions as OpenCL C: used by the pointwise kernels and by every kernel that takes an epilogue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/opencl/stage.hpp"

namespace concord::opencl {

/// `expression` as straight-line OpenCL C: declares `const float t0 = …;` for every instruction. inputs[i] is a float
/// expression for input i, coordinates[a] an integer expression for the index along axis a counted from the innermost.
/// The functions it calls stand in formulas.h, which the program must include.
[[nodiscard]] std::string print_statements(const Expression& expression, std::span<const std::string> inputs,
                                           std::span<const std::string> coordinates);
/// The name that print_statements gave to output k: "t7".
[[nodiscard]] std::string result_name(const Expression& expression, std::size_t k);

/// "float", "int", "uchar", "half": the type an operand has in OpenCL C. Throws NotSupported for others.
[[nodiscard]] std::string cl_type(DType type);
/// A float expression that reads element `index` of the operand `pointer` of this type.
[[nodiscard]] std::string cl_load(DType type, const std::string& pointer, const std::string& index);
/// A statement that writes the float expression `value` to an element; integer types round toward zero.
[[nodiscard]] std::string cl_store(DType type, const std::string& pointer, const std::string& index,
                                   const std::string& value);

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

}  // namespace concord::opencl
