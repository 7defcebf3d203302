// The passes of a depthwise convolution: on GPUs in strips where that is possible, else value by value.
#include "concord/opencl/conv/depthwise.hpp"

#include <fmt/format.h>

#include <bit>

#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

std::vector<std::string> definitions_of(const ops::ConvSizes& s) {
  constexpr std::array<char, 3> kAxes{'D', 'H', 'W'};
  const ops::Spatial kernel{s.kd, s.kh, s.kw};
  std::vector<std::string> definitions;
  for (std::size_t i = 0; i < 3; ++i) {
    definitions.push_back(fmt::format("KERNEL_{}={}", kAxes[i], kernel[i]));
    definitions.push_back(fmt::format("STRIDE_{}={}", kAxes[i], s.options.stride[i]));
    definitions.push_back(fmt::format("DILATION_{}={}", kAxes[i], s.options.dilation[i]));
  }
  return definitions;
}

void add_sizes(std::vector<Argument>& arguments, const ops::ConvSizes& s) {
  arguments.emplace_back(static_cast<std::uint32_t>(s.group_o()));
  const ops::Spatial& p = s.options.padding;
  for (const std::int64_t value : {s.d, s.h, s.w, s.od, s.oh, s.ow, p[0], p[1], p[2]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
}

std::unique_ptr<Kernel> one_stage(Context& context, std::string_view label, Stage stage) {
  return std::make_unique<StagedKernel>(context, fmt::format("{} depthwise", label),
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

/// Forward and backward-data: items own parts of the rows of a result (planes, rows, width).
std::unique_ptr<Kernel> by_rows(Context& context, const ops::ConvSizes& s, std::string_view label,
                                const std::string& function, const EpilogueText& epilogue,
                                std::array<std::int64_t, 3> result) {
  const auto [planes, rows, width] = result;
  // A CPU keeps that many sums in a vector register or two.
  const std::int64_t item_width = !context.limits().is_cpu ? 1 : width >= 16 ? 16 : 8;
  std::vector<std::string> definitions = definitions_of(s);
  definitions.push_back(fmt::format("ITEM_WIDTH={}", item_width));
  definitions.emplace_back("THREADS=1");
  std::vector<Argument> arguments{input(0), input(1), output(0), static_cast<std::uint32_t>(s.c)};
  add_sizes(arguments, s);
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  return one_stage(context, label,
                   {context.program_from(epilogue.text + kernel_source("conv/depthwise.cl"), definitions),
                    function,
                    std::move(arguments),
                    {size((width + item_width - 1) / item_width), size(rows), size(planes)},
                    {0, 0, 0}});
}

std::unique_ptr<Kernel> forward(Context& context, const ops::ConvSizes& s, std::string_view label,
                                const EpilogueText& epilogue) {
  return by_rows(context, s, label, "conv_depthwise_forward", epilogue, {s.n * s.o, s.od * s.oh, s.ow});
}

std::unique_ptr<Kernel> backward_data(Context& context, const ops::ConvSizes& s, std::string_view label,
                                      const EpilogueText& epilogue) {
  return by_rows(context, s, label, "conv_depthwise_backward_data", epilogue, {s.n * s.c, s.d * s.h, s.w});
}

std::unique_ptr<Kernel> backward_weights(Context& context, const ops::ConvSizes& s, std::string_view label) {
  const std::size_t threads =
      context.limits().is_cpu ? 1 : std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group));
  std::vector<std::string> definitions = definitions_of(s);
  definitions.emplace_back("ITEM_WIDTH=1");
  definitions.push_back(fmt::format("THREADS={}", threads));
  std::vector<Argument> arguments{input(0), input(1), output(0), static_cast<std::uint32_t>(s.c),
                                  static_cast<std::uint32_t>(s.n)};
  add_sizes(arguments, s);
  return one_stage(context, label,
                   {context.program("conv/depthwise.cl", definitions),
                    "conv_depthwise_backward_weights",
                    std::move(arguments),
                    {size(s.taps()) * threads, size(s.o), 1},
                    {threads, 1, 1}});
}

std::unique_ptr<Kernel> depthwise_kernel(Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const std::string_view label = problem.label;
  const bool in_strips = depthwise_strips_support(context, s);
  if (problem.pass == ConvPass::backward_weights) {
    return in_strips ? depthwise_strips_backward_weights(context, s, label) : backward_weights(context, s, label);
  }
  const EpilogueText epilogue = conv_epilogue(problem);
  if (problem.pass == ConvPass::backward_data) {
    return in_strips ? depthwise_strips_backward_data(context, s, label, epilogue)
                     : backward_data(context, s, label, epilogue);
  }
  return in_strips ? depthwise_strips_forward(context, s, label, epilogue) : forward(context, s, label, epilogue);
}

}  // namespace

bool conv_is_depthwise(const ops::ConvSizes& s) {
  return s.group_c() == 1 && s.c > 1 && s.taps() > 1 && std::max(s.src_plane(), s.dst_plane()) < std::int64_t{1} << 31;
}

extern const ConvImplementation kDepthwiseConv{
    .name = "depthwise",
    .alternative = alternative::kDepthwise,
    .refusal = [](const Context&,
                  const ConvProblem& problem) { return conv_is_depthwise(problem.sizes) ? kNoRefusal : kNotDepthwise; },
    .seconds = [](Context&, const ConvProblem&) { return 0.0; },
    .prepare =
        [](Context& context, const ConvProblem& problem) {
          return prepared(problem.request, depthwise_kernel(context, problem));
        }};

}  // namespace concord::opencl
