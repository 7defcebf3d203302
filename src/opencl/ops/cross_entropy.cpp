// Cross-entropy with logits on OpenCL devices, alone and with the gradient of its logits.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/loss_gradient.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::opencl {
namespace {

using WithGradient = ops::CrossEntropyWithGradient;

/// Whether logits lie in 16 bits, class inside.
bool has_tokens(const KernelRequest& request) {
  const ChannelsLast* const tokens = as_channels_last(request.input_layouts[0]);
  return (tokens != nullptr && tokens->axis() == ChannelAxis::last) ||
         as_padded_tokens(request.input_layouts[0]) != nullptr;
}

/// The statements of a slope, with products by the inverse of a row's total instead of quotients: compilers compute it
/// once a row. For results in 16 bits.
std::string with_inverse(std::string statements) {
  constexpr std::string_view kBegin = "const float ", kTotal = " = x2;";
  const std::size_t end = statements.find(kTotal);
  if (end == std::string::npos) return statements;
  const std::size_t begin = statements.rfind(kBegin, end) + kBegin.size();
  const std::string quotient = fmt::format(" / {};", statements.substr(begin, end - begin));
  for (std::size_t at = 0; (at = statements.find(quotient, at)) != std::string::npos;) {
    statements.replace(at, quotient.size(), " * inverse;");
  }
  return "  const float inverse = 1.0f / x2;\n" + statements;
}

/// What ops/cross_entropy.cl needs for the gradient: SLOPE, SLOPE_OF_ROW, SLOPE_MEMORIES and SLOPE_NUMBERS.
std::string slope_text(const Expression& slope, const KernelRequest& request, bool is_in_tokens) {
  const Shape& logits = request.inputs[0].shape;
  std::string memories, numbers, of_row, formals = "float x0, float x1, float x2", actuals;
  std::vector<std::string> names{"x0", "x1", "x2"};
  for (std::size_t i = WithGradient::kBaseInputs; i < request.inputs.size(); ++i) {
    const TensorSpec& spec = request.inputs[i];
    const std::string name = fmt::format("x{}", names.size()), memory = fmt::format("s{}", i);
    memories += fmt::format("MEMORY(const {} *, {}) ", cl_type(spec.dtype), memory);
    numbers += fmt::format("NUMBER(ulong, {}_offset) ", memory);
    const auto read = [&](const char* at) {
      return cl_load(spec.dtype, memory, fmt::format("{}_offset{}", memory, at));
    };
    const bool is_whole = spec.shape == logits && logits[1] != 1;
    if (!is_whole)
      of_row += fmt::format("const float {} = {}; ", name, read(spec.shape.elements() == 1 ? "" : " + row"));
    formals += fmt::format(", float {}", name);
    actuals += ", " + (is_whole ? read(" + row * classes + (place)") : name);
    names.push_back(name);
  }
  const std::array<std::string, 1> coordinates{"c"};
  std::string statements = print_statements(slope, names, coordinates);
  return fmt::format(
      "{}\n#define WITH_GRADIENT\n#define SLOPE_MEMORIES(MEMORY) {}\n#define SLOPE_NUMBERS(NUMBER) {}\n"
      "#define SLOPE_OF_ROW {}\n"
      "static inline float slope({}, float c) {{\n{}return {};\n}}\n"
      "#define SLOPE(x, c, place) slope(x, largest, total{}, c)\n",
      kernel_source("shared/formulas.h"), memories, numbers, of_row, formals,
      is_in_tokens ? with_inverse(std::move(statements)) : statements, result_name(slope, 0), actuals);
}

/// Lanes of a row: so many that the rows at work on a device stay in its cache until they are read for the gradient.
/// The number is the same with and without the gradient, because the bits of the loss depend on it.
Lanes lanes_of_row(const Context& context, std::int64_t classes) {
  constexpr std::int64_t kLongRow = 16384;
  constexpr std::size_t kUsual = 256, kLarge = 512;
  return lanes_for(context, classes, 1, classes >= kLongRow ? kLarge : kUsual);
}

/// `slope`: of the gradient, or null.
PreparedKernel prepare_rows(Context& context, std::string_view name, const ops::CrossEntropy& op,
                            const Expression* slope, const KernelRequest& request) {
  const Shape& logits = request.inputs[0].shape;
  CONCORD_CHECK(logits[1] < std::int64_t{1} << 31, NotSupported, "{} of {} classes", name, logits[1]);
  const Lanes lanes = lanes_of_row(context, logits[1]);
  std::vector<std::string> definitions = lanes.definitions();
  for (std::string& one : memory_definitions(context)) definitions.push_back(std::move(one));
  const bool is_in_tokens = has_tokens(request);
  if (is_in_tokens) {
    definitions.emplace_back("TOKENS");
    for (std::string& one : number_definitions(context, storage_number(request.precision))) {
      definitions.push_back(std::move(one));
    }
  }
  if (request.inputs[1].dtype == DType::i32) definitions.emplace_back("CLASS_INDEX");
  const std::size_t bytes = is_in_tokens ? 16 : 4;
  std::vector<Argument> arguments{input(0, bytes),    input(1),
                                  output(0),          output(1),
                                  output(2),          static_cast<std::uint64_t>(logits[0]),
                                  as_uint(logits[1]), op.label_smoothing()};
  std::string text;
  if (slope != nullptr) {
    text = slope_text(*slope, request, is_in_tokens);
    arguments.emplace_back(output(WithGradient::kGradient, bytes));
    for (std::size_t i = WithGradient::kBaseInputs; i < request.inputs.size(); ++i) {
      arguments.emplace_back(input(i, size_of(request.inputs[i].dtype)));
    }
  }
  Stage stage{context.program_from(text + kernel_source("ops/cross_entropy.cl"), definitions),
              "cross_entropy_forward",
              {PackedArguments{std::move(arguments)}}};
  lanes.cover(stage, logits[0]);
  PreparedKernel answer = prepared(
      request, std::make_unique<StagedKernel>(context, fmt::format("{}{}", name, is_in_tokens ? " tokens" : ""),
                                              std::vector<StagedKernel::AnyStage>{std::move(stage)}));
  if (is_in_tokens) {
    answer.input_layouts[0] = request.input_layouts[0];
    if (slope != nullptr) answer.output_layouts[WithGradient::kGradient] = request.input_layouts[0];
  }
  return answer;
}

PreparedKernel prepare_cross_entropy(Context& context, const ops::CrossEntropy& op, const KernelRequest& request) {
  return prepare_rows(context, op.name(), op, nullptr, request);
}

PreparedKernel prepare_with_gradient(Context& context, const WithGradient& op, const KernelRequest& request) {
  return prepare_rows(context, op.name(), op.base(), &op.slope(), request);
}

}  // namespace

void add_cross_entropy(Kernels& kernels) {
  kernels.add<ops::CrossEntropy, prepare_cross_entropy>();
  kernels.add<WithGradient, prepare_with_gradient>();
}

}  // namespace concord::opencl
