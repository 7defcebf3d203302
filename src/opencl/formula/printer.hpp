// Expressions as OpenCL C. Used by the pointwise kernels and by every kernel with an epilogue.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/core/types.hpp"
#include "concord/graph/expression.hpp"

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
/// A statement that writes the float `value`, a name, to an element. Integer types round toward zero, are limited to
/// their range, and store NaN as their least number.
[[nodiscard]] std::string cl_store(DType type, const std::string& pointer, const std::string& index,
                                   const std::string& value);

}  // namespace concord::opencl
