// Pointwise kernels: the expression printed into pointwise.cl. Operands of the output's size and single numbers are
// read without index arithmetic; others through the collapsed broadcast loop.
#include "concord/opencl/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/blocking.hpp"
#include "concord/opencl/context.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/source.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

/// Axes of the output, outermost first, whose coordinates the expression uses.
std::vector<std::size_t> coordinate_axes(const Expression& expression, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (const Expression::Instruction& instruction : expression.code()) {
    if (instruction.function != ScalarFunction::coordinate) continue;
    axes.push_back(rank - 1 - static_cast<std::size_t>(instruction.index));
  }
  return axes;
}

/// The broadcast loop over the output, one operand an input.
StridedLoop loop_of(const Expression& expression, const KernelRequest& request) {
  const Shape& dst = request.outputs.at(0).shape;
  StridedLoop loop{{dst.dims().begin(), dst.dims().end()}, {}, {}};
  for (const TensorSpec& spec : request.inputs) loop.strides.push_back(broadcast_strides(spec.shape, dst));
  return collapsed(std::move(loop), coordinate_axes(expression, dst.rank()));
}

/// The names of the coordinates by axis counted from the innermost.
std::vector<std::string> coordinate_names(const StridedLoop& loop, std::size_t rank) {
  std::vector<std::string> names(rank, "0");
  for (std::size_t d = 0; d < loop.dims.size() && rank > 0; ++d) names[rank - 1 - loop.axes[d]] = fmt::format("c{}", d);
  return names;
}

class PointwiseText {
 public:
  PointwiseText(const Expression& expression, const KernelRequest& request)
      : expression_(expression), request_(request), loop_(loop_of(expression, request)), index_(loop_) {
    for (std::size_t k = 0; k < request.inputs.size(); ++k) add_buffer("in", k, request.inputs[k].dtype, "const ");
    for (std::size_t k = 0; k < request.outputs.size(); ++k) add_buffer("out", k, request.outputs[k].dtype, "");
  }

  [[nodiscard]] std::string source() const {
    const std::size_t inputs = request_.inputs.size();
    std::string text = loop_.is_wide() ? "#define WIDE_INDEX\n" : "";
    text += kernel_source("index.h") + kernel_source("formulas.h");
    text += fmt::format("#define INPUTS {}\n", std::max<std::size_t>(inputs, 1));
    text += fmt::format("#define POINTWISE_PARAMETERS {}{}\n", parameters_, index_.parameters());
    text += fmt::format("#define POINTWISE_ARGUMENTS {}{}\n", names_, index_.names());
    text += "static inline void pointwise_load(float* in, const index_t i, POINTWISE_PARAMETERS) {\n" +
            index_.coordinates();
    for (std::size_t k = 0; k < inputs; ++k) {
      const std::string place = fmt::format("in{}_offset + {}", k, index_.place(k));
      text += fmt::format("  in[{}] = {};\n", k, cl_load(request_.inputs[k].dtype, fmt::format("in{}", k), place));
    }
    text += "}\nstatic inline void pointwise_store(const float* in, const index_t i, POINTWISE_PARAMETERS) {\n";
    if (expression_.uses_coordinates()) text += index_.coordinates();
    std::vector<std::string> values;
    for (std::size_t k = 0; k < inputs; ++k) values.push_back(fmt::format("in[{}]", k));
    text += print_statements(expression_, values, coordinate_names(loop_, request_.outputs.at(0).shape.rank()));
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) {
      const std::string name = fmt::format("out{}", k);
      text +=
          "  " + cl_store(request_.outputs[k].dtype, name, name + "_offset + i", result_name(expression_, k)) + "\n";
    }
    return text + "}\n" + kernel_source("pointwise.cl");
  }

  [[nodiscard]] std::vector<Argument> arguments() const {
    std::vector<Argument> out;
    for (std::size_t k = 0; k < request_.inputs.size(); ++k)
      out.emplace_back(input(k, size_of(request_.inputs[k].dtype)));
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) {
      out.emplace_back(output(k, size_of(request_.outputs[k].dtype)));
    }
    out.insert(out.end(), index_.arguments().begin(), index_.arguments().end());
    out.push_back(index_argument(loop_.elements(), loop_.is_wide()));
    return out;
  }

  [[nodiscard]] std::int64_t elements() const { return loop_.elements(); }

 private:
  void add_buffer(const char* prefix, std::size_t k, DType type, const char* qualifier) {
    if (!names_.empty()) {
      names_ += ", ";
      parameters_ += ", ";
    }
    parameters_ +=
        fmt::format("__global {0}{1}* {2}{3}, const ulong {2}{3}_offset", qualifier, cl_type(type), prefix, k);
    names_ += fmt::format("{0}{1}, {0}{1}_offset", prefix, k);
  }

  const Expression& expression_;
  const KernelRequest& request_;
  StridedLoop loop_;
  IndexText index_;
  std::string parameters_, names_;
};

}  // namespace

PreparedKernel prepare_pointwise(Context& context, const ops::Pointwise& op, const KernelRequest& request) {
  const PointwiseText text(op.expression(), request);
  const Blocking blocking = blocking_of(context.limits(), text.elements());
  Stage stage;
  stage.program = context.program_from(text.source(), {blocking.definition()});
  stage.function = "pointwise";
  stage.arguments = text.arguments();
  blocking.apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, "pointwise",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace concord::opencl
