// Convolutions of images with few channels, such as the first of a network. The copy engine brings blocks of at least
// 32 channels of every tap, of which an image of colours fills three. Unrolled, the taps of a row are channels: a
// kernel of 7 x 7 taps of 3 channels becomes one of 7 x 1 taps of 21. The unrolled image lies channels-last in the
// workspace.
#include "concord/opencl/conv/row_unrolled.hpp"

#include <algorithm>

#include "concord/opencl/conv/channels_last.hpp"
#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/filters.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

std::uint32_t count(std::int64_t value) { return static_cast<std::uint32_t>(value); }

ops::ConvSizes unrolled(const ops::ConvSizes& s) {
  ops::ConvSizes u = s;
  u.c = (s.c * s.kw + ChannelsLast::kBlock - 1) / ChannelsLast::kBlock * ChannelsLast::kBlock;
  u.w = s.ow;
  u.kw = 1;
  u.options.stride[2] = u.options.dilation[2] = 1;
  u.options.padding[2] = u.options.padding_after[2] = 0;
  return u;
}

/// Bytes of the image, at the workspace's begin.
std::size_t image_bytes(const ops::ConvSizes& u) { return aligned(size(u.n * u.c * u.src_plane() * 2)); }

Stage image_stage(Context& context, const ops::ConvSizes& s, const ops::ConvSizes& u, Precision precision) {
  const std::int64_t blocks = u.c / ChannelsLast::kBlock, items = s.n * s.h * s.ow * blocks;
  std::vector<Argument> arguments{input(0), workspace(0, 16)};
  for (const std::int64_t value : {items, blocks, s.ow}) arguments.emplace_back(count(value));
  for (const std::int64_t value : {s.h, s.w}) arguments.emplace_back(static_cast<std::int32_t>(value));
  for (const std::int64_t value : {s.c, s.kw}) arguments.emplace_back(count(value));
  for (const std::int64_t value : {s.options.stride[2], s.options.padding[2], s.options.dilation[2]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  Stage stage{context.program("conv/row_unrolled.cl", number_definitions(context, storage_number(precision))),
              "conv_row_unrolled_image", std::move(arguments)};
  blocking_of(context.limits(), items, 1).apply(stage);
  return stage;
}

/// From the gradient in the workspace, behind the image.
Stage gradient_stage(Context& context, const ops::ConvSizes& s, const ops::ConvSizes& u, Precision precision) {
  const std::int64_t items = s.o * s.c * s.taps();
  std::vector<Argument> arguments{workspace(image_bytes(u)), output(0)};
  for (const std::int64_t value : {items, s.c, s.kh, s.kw, u.c}) arguments.emplace_back(count(value));
  Stage stage{context.program("conv/row_unrolled.cl", number_definitions(context, storage_number(precision))),
              "conv_row_unrolled_gradient", std::move(arguments)};
  blocking_of(context.limits(), items, 1).apply(stage);
  return stage;
}

/// The launch that unrolls the image reads one that may have more elements.
std::int64_t largest_with_image(const Gemm& gemm, const ops::ConvSizes& s) {
  return std::max(gemm.largest, s.n * s.c * s.src_plane());
}

/// The product for the original sizes `s`, before the launch that unrolls the image is known.
Gemm forward_product(const ops::ConvSizes& s, const ops::ConvSizes& u) {
  Gemm gemm = conv_forward_gemm(u);
  gemm.largest = largest_with_image(gemm, s);
  gemm.a.buffer = blocks_of(input(1));
  gemm.b.buffer = workspace(0, 16);
  gemm.b.is_channels_last = gemm.c.is_channels_last = true;
  gemm.before_bytes = image_bytes(u);
  return gemm;
}

Gemm backward_weights_product(const ops::ConvSizes& s, const ops::ConvSizes& u) {
  Gemm gemm = conv_backward_weights_gemm(u);
  gemm.largest = largest_with_image(gemm, s);
  gemm.b.buffer = workspace(0, 16);
  gemm.a.is_channels_last = gemm.b.is_channels_last = true;
  gemm.c.buffer = workspace(image_bytes(u));
  gemm.before_bytes = image_bytes(u) + aligned(size(u.o * u.c * u.taps() * 4));
  return gemm;
}

std::string_view row_unrolled_refusal(const Context& context, const ConvProblem& problem) {
  if (problem.pass == ConvPass::backward_data) return kOtherPass;
  if (const std::string_view why = channels_last_refusal(context, problem); !why.empty()) return why;
  if (!has_few_channels(problem.sizes)) return "the image has too many channels, or a multiple of 8";
  const ops::ConvSizes &s = problem.sizes, u = unrolled(s);
  Gemm gemm = problem.pass == ConvPass::forward ? forward_product(s, u) : backward_weights_product(s, u);
  gemm.precision = problem.request.precision;
  return tma_gemm().refusal(context, gemm);
}

PreparedKernel prepare_row_unrolled(Context& context, const ConvProblem& problem) {
  const Precision precision = problem.request.precision;
  if (problem.pass == ConvPass::forward) {
    const Gemm gemm = row_unrolled_forward_gemm(context, problem.sizes, precision, channels_last_epilogue(problem));
    const auto filters = row_unrolled_filters(problem.sizes, storage_number(precision), gemm.a.filter_channels);
    return prepared_channels_last(problem, prepare_gemm(context, gemm, problem.label), filters);
  }
  const RowUnrolledGradient gradient = row_unrolled_backward_weights_gemm(context, problem.sizes, precision);
  const std::unique_ptr<Kernel> product = prepare_gemm(context, gradient.gemm, problem.label);
  std::vector<StagedKernel::AnyStage> stages = dynamic_cast<const StagedKernel&>(*product).stages();
  stages.emplace_back(gradient.last);
  return prepared_channels_last(
      problem, std::make_unique<StagedKernel>(context, product->name(), std::move(stages), product->workspace()));
}

}  // namespace

Gemm row_unrolled_forward_gemm(Context& context, const ops::ConvSizes& s, Precision precision,
                               const EpilogueText& epilogue) {
  const ops::ConvSizes u = unrolled(s);
  Gemm gemm = forward_product(s, u);
  gemm.precision = precision;
  gemm.epilogue = epilogue;
  gemm.before = {image_stage(context, s, u, precision)};
  gemm.a.filter_channels = filter_channels(context, gemm);
  return gemm;
}

RowUnrolledGradient row_unrolled_backward_weights_gemm(Context& context, const ops::ConvSizes& s, Precision precision) {
  const ops::ConvSizes u = unrolled(s);
  Gemm gemm = backward_weights_product(s, u);
  gemm.precision = precision;
  gemm.before = {image_stage(context, s, u, precision)};
  return {gemm, gradient_stage(context, s, u, precision)};
}

extern const ConvImplementation kRowUnrolledConv{.name = "row-unrolled",
                                                 .alternative = alternative::kChannelsLast,
                                                 .refusal = row_unrolled_refusal,
                                                 .seconds = channels_last_seconds,
                                                 .prepare = prepare_row_unrolled,
                                                 .device_refusal = channels_last_device_refusal};

}  // namespace concord::opencl
