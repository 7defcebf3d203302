// Pointwise operators on images in channels-last layout: the expression printed into pointwise_channels_last.cl.
#include "concord/opencl/formula/pointwise_channels_last.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

bool all_results_lie_so(const KernelRequest& request, DType number, ChannelAxis axis) {
  return std::ranges::all_of(request.outputs, [&](const TensorSpec& spec) {
    return spec.shape == request.outputs[0].shape && spec.dtype == DType::f32 &&
           channels_last(spec, number, axis) != nullptr;
  });
}

/// The axis of the channels of the first input that lies channels-last and has the shape of the result.
std::optional<ChannelAxis> result_axis(const KernelRequest& request) {
  for (const std::size_t i : like_result(request, request.inputs)) {
    if (const ChannelsLast* found = as_channels_last(request.input_layouts[i])) return found->axis();
  }
  return std::nullopt;
}

std::string source_of(const ops::Pointwise& op, const KernelRequest& request, const BlockOperands& operands) {
  std::string parameters = operands.parameters, names = operands.names;
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
    text += fmt::format("  in[{0}] = e{1}[e{1}_offset + at];\n", i, operands.whole[i]);
  }
  text +=
      "}\nstatic inline void pointwise_store(const uint4 *in, uint at, uint image, uint channel POINTWISE_PARAMETERS) "
      "{\n";
  for (std::size_t i = 0; i < operands.whole.size(); ++i) {
    text += fmt::format("  float x{1}[BLOCK_CHANNELS];\n  read_block(x{1}, in[{0}]);\n", i, operands.whole[i]);
  }
  text += operands.small_reads;
  for (std::size_t k = 0; k < request.outputs.size(); ++k) text += fmt::format("  float y{}[BLOCK_CHANNELS];\n", k);
  text += "  EACH_CHANNEL(e) {\n" + print_statements(op.expression(), values, {});
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    text += fmt::format("  y{}[e] = {};\n", k, result_name(op.expression(), k));
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
  const std::optional<ChannelAxis> axis = result_axis(request);
  if (!axis || op.expression().uses_coordinates()) return std::nullopt;
  const DType number = storage_number(request.precision);
  const std::optional<BlockOperands> operands = block_operands(request, 0, 0, *axis);
  if (!operands || !all_results_lie_so(request, number, *axis)) return std::nullopt;

  const ChannelsLast result(request.outputs[0].shape, number, *axis);
  constexpr std::size_t kPerItem = 2;
  const Blocking blocking = blocking_of(context.limits(), result.blocks(), kPerItem);
  std::vector<std::string> definitions = number_definitions(context, number);
  definitions.push_back(blocking.definition());
  Stage stage{context.program_from(source_of(op, request, *operands), definitions),
              "pointwise",
              {static_cast<std::uint32_t>(result.blocks()),
               static_cast<std::uint32_t>(result.channels() / ChannelsLast::kBlock),
               static_cast<std::uint32_t>(result.places())}};
  stage.arguments.insert(stage.arguments.end(), operands->arguments.begin(), operands->arguments.end());
  for (std::size_t k = 0; k < request.outputs.size(); ++k) stage.arguments.emplace_back(blocks_of(output(k)));
  blocking.apply(stage);
  auto kernel = std::make_unique<StagedKernel>(context, "pointwise channels-last",
                                               std::vector<StagedKernel::AnyStage>{std::move(stage)});
  return prepared_channels_last(request, std::move(kernel), like_result(request, request.inputs),
                                like_result(request, request.outputs), *axis);
}

}  // namespace concord::opencl
