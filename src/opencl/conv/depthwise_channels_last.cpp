// The passes of a depthwise convolution on images that lie channels-last (cl_kernels/conv/depthwise_channels_last.cl).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::array<std::size_t, 1> kFirst{0};

/// At least one of the images lies so already, and both can.
std::string_view depthwise_channels_last_refusal(const Context&, const ConvProblem& problem) {
  constexpr std::int64_t kMostTaps = 7, kMostStride = 2;  // that registers hold strips of
  const ops::ConvSizes& s = problem.sizes;
  const ops::Spatial& stride = s.options.stride;
  const DType number = storage_number(problem.request.precision);
  if (first_channels_last(problem.request) == nullptr) return "no image lies channels-last";
  if (!channels_last(problem.src(), number) || !channels_last(problem.dst(), number)) {
    return "an image cannot lie channels-last";
  }
  if (s.d != 1 || s.kd != 1 || s.od != 1 || s.options.padding[0] != 0) return kNotAnImage;
  if (s.options.groups != s.c || s.o != s.c) return kNotDepthwise;
  if (s.kh > kMostTaps || s.kw > kMostTaps) return "the kernel is larger than 7 x 7";
  if (s.options.dilation != ops::Spatial{1, 1, 1}) return "it is dilated";
  if (stride[1] != stride[2] || stride[2] > kMostStride) return "the stride is neither 1 nor 2 in both dimensions";
  if (problem.epilogue == nullptr) return kNoRefusal;
  if (problem.pass == ConvPass::backward_weights) return "it applies no epilogue to the gradient of weights";
  return block_epilogue(problem.request, *problem.epilogue) ? kNoRefusal : kEpilogueOperand;
}

/// The turned filters, then the pass over the result's strips.
std::unique_ptr<Kernel> over_strips(Context& context, const ConvProblem& problem, std::string function,
                                    std::int64_t strip, const ImageSizes& source, const ImageSizes& result,
                                    const ImageSizes& padding, const EpilogueText& epilogue) {
  const ops::ConvSizes& s = problem.sizes;
  const std::int64_t stride = s.options.stride[2];
  const std::int64_t strips = divide_up(result.width, strip), blocks = s.c / ChannelsLast::kBlock;
  const std::int64_t items = s.n * result.height * strips * blocks;
  std::vector<std::string> definitions = number_definitions(context, storage_number(problem.request.precision));
  definitions.insert(definitions.end(), {fmt::format("KERNEL_H={}", s.kh), fmt::format("KERNEL_W={}", s.kw),
                                         fmt::format("STRIDE={}", stride), fmt::format("STRIP={}", strip)});
  std::vector<Argument> arguments{blocks_of(input(0)), workspace(0, 16), blocks_of(output(0))};
  for (const std::int64_t value : {items, blocks, strips}) arguments.emplace_back(as_uint(value));
  for (const ImageSizes& sizes : {source, result, padding}) {
    arguments.emplace_back(static_cast<std::int32_t>(sizes.height));
    arguments.emplace_back(static_cast<std::int32_t>(sizes.width));
  }
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  Stage pass{
      context.program_from(epilogue.text + kernel_source("conv/depthwise_channels_last.cl"), std::move(definitions)),
      std::move(function), std::move(arguments)};
  blocking_of(context.limits(), items, 1).apply(pass);
  return std::make_unique<StagedKernel>(
      context, fmt::format("{} depthwise channels-last", problem.label),
      std::vector<StagedKernel::AnyStage>{depthwise_turn(context, s, stride == 1), std::move(pass)},
      size(s.c * s.taps()) * sizeof(float));
}

EpilogueText epilogue_of(const ConvProblem& problem) {
  return problem.epilogue == nullptr ? EpilogueText{} : block_epilogue(problem.request, *problem.epilogue).value();
}

/// The image, and behind the weights what the epilogue reads.
PreparedKernel prepared_images(const KernelRequest& request, std::unique_ptr<Kernel> pass) {
  std::vector<std::size_t> images = like_result(request, request.inputs);
  if (std::ranges::find(images, std::size_t{0}) == images.end()) images.push_back(0);
  return prepared_channels_last(request, std::move(pass), images, kFirst);
}

PreparedKernel forward(Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  return prepared_images(problem.request,
                         depthwise_columns(context, problem, {s.h, s.w}, {s.oh, s.ow},
                                           {s.options.padding[1], s.options.padding[2]}, epilogue_of(problem)));
}

PreparedKernel backward_data(Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const EpilogueText epilogue = epilogue_of(problem);
  const ImageSizes source{s.oh, s.ow}, result{s.h, s.w}, padding{s.options.padding[1], s.options.padding[2]};
  if (s.options.stride[2] > 1) {
    return prepared_images(problem.request,
                           over_strips(context, problem, "depthwise_scatter", 1, source, result, padding, epilogue));
  }
  // The forward sum, over flipped filters. On an H200 strips of 8 channels are as fast or faster for small filters,
  // whose gradients have an epilogue that reads images.
  constexpr std::int64_t kLarge = 7, kStrip = 4;
  const ImageSizes left{s.kh - 1 - padding.height, s.kw - 1 - padding.width};
  const bool is_large = s.kh >= kLarge && s.kw >= kLarge;
  return prepared_images(problem.request, is_large ? depthwise_columns(context, problem, source, result, left, epilogue)
                                                   : over_strips(context, problem, "depthwise_gather", kStrip, source,
                                                                 result, left, epilogue));
}

PreparedKernel prepare_depthwise_channels_last(Context& context, const ConvProblem& problem) {
  if (problem.pass == ConvPass::forward) return forward(context, problem);
  return problem.pass == ConvPass::backward_data ? backward_data(context, problem)
                                                 : depthwise_columns_backward_weights(context, problem);
}

}  // namespace

extern const ConvImplementation kDepthwiseChannelsLastConv{.name = "depthwise-channels-last",
                                                           .refusal = depthwise_channels_last_refusal,
                                                           .seconds = [](Context&, const ConvProblem&) { return 0.0; },
                                                           .prepare = prepare_depthwise_channels_last};

}  // namespace concord::opencl
