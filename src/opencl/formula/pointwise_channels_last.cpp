// Pointwise operators on images in channels-last layout: the expression printed into pointwise_channels_last.cl.
#include "concord/opencl/formula/pointwise_channels_last.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// How the results lie: as the first input of their shape that lies channels-last or in padded tokens.
struct ResultLayout {
  ChannelAxis axis;
  bool is_padded;
  /// Null where it is not possible.
  [[nodiscard]] Layout of(const TensorSpec& spec, DType number) const {
    return is_padded ? padded_tokens(spec, number) : channels_last(spec, number, axis);
  }
};

std::optional<ResultLayout> result_layout(const KernelRequest& request) {
  for (const std::size_t i : like_result(request, request.inputs)) {
    if (const ChannelsLast* found = as_channels_last(request.input_layouts[i]))
      return ResultLayout{found->axis(), false};
    if (const ChannelColumns* found = as_channel_columns(request.input_layouts[i])) {
      return ResultLayout{found->axis(), false};
    }
    if (as_padded_tokens(request.input_layouts[i]) != nullptr) return ResultLayout{ChannelAxis::last, true};
  }
  return std::nullopt;
}

bool all_results_lie_so(const KernelRequest& request, DType number, const ResultLayout& layout) {
  return std::ranges::all_of(request.outputs, [&](const TensorSpec& spec) {
    return spec.shape == request.outputs[0].shape && spec.dtype == DType::f32 && layout.of(spec, number) != nullptr;
  });
}

/// Whether the kernel knows all coordinates: of tokens the last one.
bool has_coordinates(const Expression& expression, ChannelAxis axis) {
  return std::ranges::all_of(expression.code(), [&](const auto& instruction) {
    return instruction.function != ScalarFunction::coordinate || (axis == ChannelAxis::last && instruction.index == 0);
  });
}

/// `written`: the condition of an element that is not padding; empty for none.
std::string source_of(const ops::Pointwise& op, const KernelRequest& request, const BlockOperands& operands,
                      const std::string& written) {
  std::string parameters = operands.parameter_list(), names = operands.argument_list();
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    parameters += fmt::format(", __global uint4 *out{0}, ulong out{0}_offset", k);
    names += fmt::format(", out{0}, out{0}_offset", k);
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) values.push_back(fmt::format("x{}[e]", i));

  std::string text = kernel_source("shared/formulas.h") + kernel_source("shared/channels_last.h");
  text += fmt::format("#define POINTWISE_PARAMETERS {}\n#define POINTWISE_ARGUMENTS {}\n", parameters, names);
  text += fmt::format("#define INPUTS {}\n", std::max<std::size_t>(operands.whole.size(), 1));
  text += "static inline void pointwise_load(uint4 *in, uint at POINTWISE_PARAMETERS) {\n";
  for (std::size_t i = 0; i < operands.whole.size(); ++i) {
    text += fmt::format("  in[{0}] = e{1}[e{1}_offset + {2}];\n", i, operands.whole[i].number, operands.whole[i].at);
  }
  text +=
      "}\nstatic inline void pointwise_store(const uint4 *in, uint at, uint image, uint channel POINTWISE_PARAMETERS) "
      "{\n";
  for (std::size_t i = 0; i < operands.whole.size(); ++i) {
    text += fmt::format("  float x{1}[BLOCK_CHANNELS];\n  read_block(x{1}, in[{0}]);\n", i, operands.whole[i].number);
  }
  text += operands.small_reads;
  for (std::size_t k = 0; k < request.outputs.size(); ++k) text += fmt::format("  float y{}[BLOCK_CHANNELS];\n", k);
  const std::array<std::string, 1> coordinates{"channel + e"};
  text += "  EACH_CHANNEL(e) {\n" + print_statements(op.expression(), values, coordinates);
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    const std::string value = result_name(op.expression(), k);
    text += fmt::format("  y{}[e] = {};\n", k, written.empty() ? value : fmt::format("{} ? {} : 0.0f", written, value));
  }
  text += "  }\n";
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    text += fmt::format("  out{0}[out{0}_offset + at] = block_of(y{0});\n", k);
  }
  return text + "}\n" + kernel_source("formula/pointwise_channels_last.cl");
}

}  // namespace

std::optional<PreparedKernel> prepare_pointwise_channels_last(Context& context, const ops::Pointwise& op,
                                                              const KernelRequest& request) {
  const std::optional<ResultLayout> layout = result_layout(request);
  if (!layout || !has_coordinates(op.expression(), layout->axis)) return std::nullopt;
  const DType number = storage_number(request.precision);
  const std::optional<BlockOperands> operands =
      block_operands(request, request.outputs[0].shape, 0, request.inputs.size(), 0, layout->axis);
  if (!operands || !all_results_lie_so(request, number, *layout)) return std::nullopt;

  const ChannelsLast result(request.outputs[0].shape, number, layout->axis);
  const std::int64_t channel_blocks = divide_up(result.channels(), ChannelsLast::kBlock);
  const std::int64_t blocks = result.rows() * channel_blocks;
  constexpr std::size_t kPerItem = 2;
  const Blocking blocking = blocking_of(context.limits(), blocks, kPerItem);
  std::vector<std::string> definitions = number_definitions(context, number);
  definitions.push_back(blocking.definition());
  const std::string written = layout->is_padded ? fmt::format("channel + e < {}u", result.channels()) : std::string();
  Stage stage{context.program_from(source_of(op, request, *operands, written), definitions),
              "pointwise",
              {as_uint(blocks), as_uint(channel_blocks), as_uint(result.places())}};
  stage.arguments.insert(stage.arguments.end(), operands->arguments.begin(), operands->arguments.end());
  for (std::size_t k = 0; k < request.outputs.size(); ++k) stage.arguments.emplace_back(blocks_of(output(k)));
  blocking.apply(stage);
  auto kernel = std::make_unique<StagedKernel>(context, "pointwise channels-last",
                                               std::vector<StagedKernel::AnyStage>{std::move(stage)});
  PreparedKernel answer = prepared(request, std::move(kernel));
  for (const std::size_t i : like_result(request, request.inputs)) {
    answer.input_layouts[i] = as_operand(request.input_layouts[i], layout->of(request.inputs[i], number));
  }
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    answer.output_layouts[k] = layout->of(request.outputs[k], number);
  }
  return answer;
}

}  // namespace concord::opencl
