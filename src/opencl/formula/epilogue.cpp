// Epilogues of the GEMM kernels: an expression printed over the value of C(z, m, n) and further operands.
#include "concord/opencl/formula/epilogue.hpp"

#include <fmt/format.h>

#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {

EpilogueText gemm_epilogue(const Expression& expression, std::span<const EpilogueOperand> extra) {
  EpilogueText result;
  std::string parameters, formals = "float x0", actuals = "value";
  std::vector<std::string> inputs{"x0"};
  for (std::size_t j = 0; j < extra.size(); ++j) {
    const EpilogueOperand& operand = extra[j];
    const std::string e = fmt::format("e{}", j + 1);
    parameters +=
        fmt::format(", __global const {0} *restrict {1}, ulong {1}_offset, ulong {1}_z, ulong {1}_m, ulong {1}_outer",
                    cl_type(operand.dtype), e);
    formals += fmt::format(", float x{}", j + 1);
    // The stride within a block is a literal: with 1, compilers read adjacent elements together.
    const std::string index = fmt::format(
        "{0}_offset + (z) * {0}_z + (m) * {0}_m + (n_outer) * {0}_outer + (n_inner) * {1}ul", e, operand.inner);
    actuals += ", " + cl_load(operand.dtype, e, index);
    inputs.push_back(fmt::format("x{}", j + 1));
    result.arguments.emplace_back(input(operand.input, size_of(operand.dtype)));
    if (operand.m != 0 && (operand.outer != 0 || operand.inner != 0)) ++result.whole_operands;
    for (const std::int64_t stride : {operand.z, operand.m, operand.outer}) {
      result.arguments.emplace_back(static_cast<std::uint64_t>(stride));
    }
  }
  result.text = fmt::format(
      "{}\n#define EPILOGUE_IS_EXPRESSION\n#define EPILOGUE_PARAMETERS {}\nstatic inline float gemm_epilogue({}) "
      "{{\n{}\nreturn {};\n}}\n"
      "#define EPILOGUE(value, z, m, n_outer, n_inner) gemm_epilogue({})\n",
      kernel_source("shared/formulas.h"), parameters, formals, print_statements(expression, inputs, {}),
      result_name(expression, 0), actuals);
  return result;
}

}  // namespace concord::opencl
