// Pointwise kernels: the expression printed into pointwise.cl. Kernels read operands of the output's size and scalars
// without index arithmetic, other operands through the collapsed broadcast loop.
#include "concord/ops/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/pointwise_channels_last.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/program/source.hpp"

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

/// The broadcast loop over the output; each input is one operand.
StridedLoop loop_of(const Expression& expression, const KernelRequest& request) {
  const Shape& dst = request.outputs.at(0).shape;
  StridedLoop loop{{dst.dims().begin(), dst.dims().end()}, {}, {}};
  for (const TensorSpec& spec : request.inputs) loop.strides.push_back(broadcast_strides(spec.shape, dst));
  return collapsed(std::move(loop), coordinate_axes(expression, dst.rank()));
}

/// The text of a pointwise kernel and its arguments.
class PointwiseText {
 public:
  PointwiseText(const Expression& expression, const KernelRequest& request)
      : expression_(expression),
        request_(request),
        loop_(loop_of(expression, request)),
        index_(loop_, loop_.is_wide()) {
    for (std::size_t k = 0; k < request.inputs.size(); ++k) add_buffer("in", k, request.inputs[k].dtype, "const ");
    for (std::size_t k = 0; k < request.outputs.size(); ++k) add_buffer("out", k, request.outputs[k].dtype, "");
  }

  /// For pointwise.cl.
  [[nodiscard]] std::string by_element() const {
    const std::size_t inputs = request_.inputs.size();
    std::string text = head() + fmt::format("#define INPUTS {}\n", std::max<std::size_t>(inputs, 1));
    text += "static inline void pointwise_load(float* in, const index_t i, POINTWISE_PARAMETERS) {\n";
    text += index_.coordinates();
    for (std::size_t k = 0; k < inputs; ++k) {
      const std::string place = fmt::format("in{}_offset + {}", k, index_.place(k));
      text += fmt::format("  in[{}] = {};\n", k, cl_load(request_.inputs[k].dtype, fmt::format("in{}", k), place));
    }
    text += "}\nstatic inline void pointwise_store(const float* in, const index_t i, POINTWISE_PARAMETERS) {\n";
    if (expression_.uses_coordinates()) text += index_.coordinates();
    std::vector<std::string> values;
    for (std::size_t k = 0; k < inputs; ++k) values.push_back(fmt::format("in[{}]", k));
    text += print_statements(expression_, values, coordinate_names(""));
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) {
      const std::string name = fmt::format("out{}", k);
      text += store(k, name, name + "_offset + i");
    }
    return text + "}\n" + kernel_source("formula/pointwise.cl");
  }

  /// For pointwise_contiguous.cl. The text moves pointers to the start of the run: a loop whose index includes an
  /// offset does not vectorise.
  [[nodiscard]] std::string by_run() const {
    std::string text = head();
    text += "static inline index_t pointwise_run(const index_t i, const index_t end, POINTWISE_PARAMETERS) {\n";
    text += index_.coordinates() + fmt::format("  const index_t run = {};\n", index_.run_length());
    std::vector<std::string> values;
    for (std::size_t k = 0; k < request_.inputs.size(); ++k) {
      const DType type = request_.inputs[k].dtype;
      text += fmt::format("  __global const {0}* from{1} = in{1} + in{1}_offset + {2};\n", cl_type(type), k,
                          index_.place(k));
      const std::string& step = index_.step(k);
      values.push_back(cl_load(type, fmt::format("from{}", k), step == "0" ? "0" : step == "1" ? "j" : "j * " + step));
    }
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) {
      text +=
          fmt::format("  __global {0}* to{1} = out{1} + out{1}_offset + i;\n", cl_type(request_.outputs[k].dtype), k);
    }
    const std::string statements = print_statements(expression_, values, coordinate_names(" + j"));
    std::string stores;
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) stores += store(k, fmt::format("to{}", k), "j");
    // An operand and a result may share memory; then the same iteration of the loop reads and writes an element.
    const std::string loop = "#pragma clang loop vectorize(assume_safety)\n  for (index_t j = 0; j < run; ++j) {\n";
    if (const std::string look = look_for_large_sines(); !look.empty()) {
      text += "  uint large = 0;\n" + loop + statements + look + "  }\n  if (large == 0) {\n" + loop +
              of_small_sines(statements) + stores + "  }\n  return run;\n  }\n";
    }
    text += loop + statements + stores;
    return text + "  }\n  return run;\n}\n" + kernel_source("formula/pointwise_contiguous.cl");
  }

  /// The arguments for operands, results and the loop; a kernel appends its other arguments.
  [[nodiscard]] std::vector<Argument> arguments() const {
    std::vector<Argument> out;
    for (std::size_t k = 0; k < request_.inputs.size(); ++k)
      out.emplace_back(input(k, size_of(request_.inputs[k].dtype)));
    for (std::size_t k = 0; k < request_.outputs.size(); ++k) {
      out.emplace_back(output(k, size_of(request_.outputs[k].dtype)));
    }
    out.insert(out.end(), index_.arguments().begin(), index_.arguments().end());
    return out;
  }

  [[nodiscard]] std::int64_t elements() const { return loop_.elements(); }
  [[nodiscard]] Argument index(std::int64_t value) const { return index_argument(value, loop_.is_wide()); }

 private:
  [[nodiscard]] std::string head() const {
    return (loop_.is_wide() ? "#define WIDE_INDEX\n" : "") + kernel_source("shared/index.h") +
           kernel_source("shared/formulas.h") +
           fmt::format("#define POINTWISE_PARAMETERS {}{}\n#define POINTWISE_ARGUMENTS {}{}\n", parameters_,
                       index_.parameters(), names_, index_.names());
  }

  /// The coordinates by axis, counted from the innermost; `moved` is added to the innermost one of the loop.
  [[nodiscard]] std::vector<std::string> coordinate_names(const std::string& moved) const {
    const std::size_t rank = request_.outputs.at(0).shape.rank();
    std::vector<std::string> names(rank, "0");
    for (std::size_t d = 0; d < loop_.dims.size() && rank > 0; ++d) {
      names[rank - 1 - loop_.axes[d]] = fmt::format("c{}{}", d, d + 1 == loop_.dims.size() ? moved : "");
    }
    return names;
  }

  /// Statements that set `large` where the argument of a sine or cosine is large; such arguments take three times as
  /// long.
  [[nodiscard]] std::string look_for_large_sines() const {
    std::string text;
    for (const Expression::Instruction& one : expression_.code()) {
      if (one.function != ScalarFunction::sin && one.function != ScalarFunction::cos) continue;
      text += fmt::format("  large |= concord_is_small(t{}) ? 0 : 1;\n", one.arguments[0]);
    }
    return text;
  }
  static std::string of_small_sines(std::string statements) {
    for (const std::string_view name : {"concord_sin(", "concord_cos("}) {
      for (std::size_t at = 0; (at = statements.find(name, at)) != std::string::npos; at += name.size()) {
        statements.insert(at + name.size() - 1, "_of_small");
      }
    }
    return statements;
  }

  [[nodiscard]] std::string store(std::size_t k, const std::string& pointer, const std::string& place) const {
    return "  " + cl_store(request_.outputs[k].dtype, pointer, place, result_name(expression_, k)) + "\n";
  }

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

PreparedKernel prepare_pointwise(Context& context, const ops::Pointwise& op, const KernelRequest& request) {
  if (auto kernel = prepare_pointwise_channels_last(context, op, request)) return *std::move(kernel);
  const PointwiseText text(op.expression(), request);
  Stage stage;
  stage.function = "pointwise";
  stage.arguments = text.arguments();
  if (context.limits().is_cpu) {
    const Chunking chunking = chunking_of(context.limits(), text.elements());
    stage.program = context.program_from(text.by_run());
    stage.arguments.push_back(text.index(chunking.chunk));
    chunking.apply(stage);
  } else {
    const Blocking blocking = blocking_of(context.limits(), text.elements());
    stage.program = context.program_from(text.by_element(), {blocking.definition()});
    blocking.apply(stage);
  }
  stage.arguments.push_back(text.index(text.elements()));
  return prepared(request, std::make_unique<StagedKernel>(context, "pointwise",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_pointwise(Kernels& kernels) { kernels.add<ops::Pointwise, prepare_pointwise>(); }

}  // namespace concord::opencl
