// The passes of a convolution on images that lie channels-last, which the copy engine takes as they are.
#include "concord/opencl/conv/channels_last.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/filters.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

bool is_whole_blocks(std::int64_t channels) { return channels % ChannelsLast::kBlock == 0; }

bool is_strided(const ops::ConvSizes& s) { return s.options.stride != ops::Spatial{1, 1, 1}; }

/// One, or one for each phase of a data gradient's stride. What has no whole blocks of channels stays row-major.
std::vector<Gemm> products_of(const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  std::vector<Gemm> products;
  if (problem.pass == ConvPass::forward) {
    products = {conv_forward_gemm(s)};
    products[0].b.is_channels_last = is_whole_blocks(s.c);
    products[0].c.is_channels_last = is_whole_blocks(s.o);
  } else if (problem.pass == ConvPass::backward_weights) {
    products = {conv_backward_weights_gemm(s)};
    products[0].a.is_channels_last = is_whole_blocks(s.o);
    products[0].b.is_channels_last = is_whole_blocks(s.c);
  } else {
    if (is_strided(s)) {
      products = conv_polyphase(s).products;
    } else {
      products = {conv_backward_data_gemm(s)};
    }
    for (Gemm& gemm : products) {
      gemm.b.is_channels_last = is_whole_blocks(s.o);
      gemm.c.is_channels_last = true;
    }
  }
  for (Gemm& gemm : products) gemm.precision = problem.request.precision;
  return products;
}

std::string_view channels_last_conv_refusal(const Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const bool is_data = problem.pass == ConvPass::backward_data;
  if (const std::string_view why = channels_last_refusal(context, problem); !why.empty()) return why;
  if (!is_data && has_few_channels(s)) return "the image is row-unrolled, where possible";
  if (is_data && !is_whole_blocks(s.c)) return "the image's channels are no multiple of 8";
  if (is_data && is_strided(s)) {
    if (!is_whole_blocks(s.o)) return "it is strided, and the result's channels are no multiple of 8";
    if (const std::string_view why = conv_polyphase_refusal(s); !why.empty()) return why;
  }
  const std::vector<Gemm> products = products_of(problem);
  if (products.empty()) return "no tap reaches a place of the image";
  for (const Gemm& gemm : products) {
    if (const std::string_view why = tma_gemm().refusal(context, gemm); !why.empty()) return why;
  }
  return kNoRefusal;
}

/// Of a pass that reads the weights; a data gradient's taps go from the last to the first.
std::shared_ptr<const Filters> filters_of(const ConvProblem& problem, std::int64_t padded) {
  const ops::ConvSizes& s = problem.sizes;
  const DType number = storage_number(problem.request.precision);
  if (problem.pass == ConvPass::forward) return forward_filters(s, number, padded);
  std::vector<std::uint32_t> taps;
  for (std::int64_t tap = s.taps(); tap-- > 0;) taps.push_back(static_cast<std::uint32_t>(tap));
  return backward_filters(s, number, padded, {std::move(taps)});
}

/// Whether the product should leave the gradient of weights by taps, for a launch that turns it: it writes the numbers
/// of a tap, which lie `taps` apart in the weights, one by one. On an H200 the gradient of 512x512x3x3 weights of one
/// image of 7x7 places takes 35 µs so, and 25 µs with that launch.
bool leaves_taps_outside(const ConvProblem& problem) {
  constexpr std::int64_t kFewest = std::int64_t{3} << 18, kMostTaps = 25;
  const ops::ConvSizes& s = problem.sizes;
  return problem.epilogue == nullptr && is_whole_blocks(s.c) && is_whole_blocks(s.o) && s.taps() > 1 &&
         s.taps() <= kMostTaps && s.o * s.c * s.taps() >= kFewest && s.o <= kMostGroups;
}

PreparedKernel prepare_turned_gradient(Context& context, const ConvProblem& problem, Gemm gemm) {
  constexpr std::int64_t kThreads = 128, kChannels = 64;  // conv/turned_gradient.cl
  const ops::ConvSizes& s = problem.sizes;
  gemm.c.buffer = workspace();
  gemm.c.has_taps_outside = true;
  gemm.before_bytes = size(round_up(s.o * s.c * s.taps() * 4, 256));
  const std::unique_ptr<Kernel> product = prepare_gemm(context, gemm, problem.label);
  std::vector<StagedKernel::AnyStage> stages = dynamic_cast<const StagedKernel&>(*product).stages();
  stages.emplace_back(Stage{context.program("conv/turned_gradient.cl", {fmt::format("TAPS={}", s.taps())}),
                            "conv_turn_gradient",
                            {PackedArguments{{workspace(), output(0), as_uint(s.c)}}},
                            {size(divide_up(s.c, kChannels) * kThreads), size(s.o), 1},
                            {size(kThreads), 1, 1}});
  return prepared_channels_last(
      problem, std::make_unique<StagedKernel>(context, product->name(), std::move(stages), product->workspace()));
}

PreparedKernel prepare_channels_last(Context& context, const ConvProblem& problem) {
  const EpilogueText epilogue = channels_last_epilogue(problem);
  if (problem.pass == ConvPass::backward_data && is_strided(problem.sizes)) {
    PolyphaseBlocks phases = prepare_polyphase_blocks(context, problem, epilogue);
    return prepared_channels_last(problem, std::move(phases.kernel), phases.filters);
  }
  Gemm gemm = products_of(problem).front();
  gemm.epilogue = epilogue;
  if (problem.pass == ConvPass::backward_weights) {
    if (leaves_taps_outside(problem)) return prepare_turned_gradient(context, problem, std::move(gemm));
    return prepared_channels_last(problem, prepare_gemm(context, gemm, problem.label));
  }
  gemm.a.buffer = blocks_of(input(1));
  gemm.a.filter_channels = filter_channels(context, gemm);
  return prepared_channels_last(problem, prepare_gemm(context, gemm, problem.label),
                                filters_of(problem, gemm.a.filter_channels));
}

/// Whether an image of more than a pixel lies channels-last already: another layout costs reorders.
bool lies_channels_last(const ConvProblem& problem) {
  const KernelRequest& request = problem.request;
  const std::size_t images = problem.pass == ConvPass::backward_weights ? 2 : 1;  // behind them: weights
  return problem.sizes.dst_plane() > 1 &&
         std::ranges::any_of(std::span(request.input_layouts).first(images),
                             [](const Layout& layout) { return as_channels_last(layout) != nullptr; });
}

/// Whether the result is an image that lies channels-last.
bool gives_channels_last(const ConvProblem& problem) {
  if (problem.pass == ConvPass::backward_weights) return false;
  return is_whole_blocks(problem.pass == ConvPass::forward ? problem.sizes.o : problem.sizes.c);
}

}  // namespace

bool has_few_channels(const ops::ConvSizes& s) {
  constexpr std::int64_t kMostNumbers = 64;  // of a row: two tiles of k
  return s.c % ChannelsLast::kBlock != 0 && s.c * s.kw <= kMostNumbers && s.n * s.h * s.ow * kMostNumbers < 1LL << 31;
}

std::string_view channels_last_refusal(const Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const Precision precision = problem.request.precision;
  if (const std::string_view why = storage_refusal(context, precision); !why.empty()) return why;
  if (s.d != 1 || s.kd != 1 || s.od != 1 || s.options.padding[0] != 0) return kNotAnImage;
  if (s.options.groups != 1) return "it has groups";
  const DType number = storage_number(precision);
  const bool is_src = is_whole_blocks(s.c), is_dst = is_whole_blocks(s.o);
  if ((!is_src && !is_dst) || (is_dst && channels_last(problem.dst(), number) == nullptr) ||
      (is_src && channels_last(problem.src(), number) == nullptr)) {
    return "an image cannot lie channels-last";
  }
  if (problem.epilogue == nullptr || !gives_channels_last(problem)) return kNoRefusal;
  return block_epilogue(problem.request, *problem.epilogue) ? kNoRefusal : kEpilogueOperand;
}

std::string_view channels_last_device_refusal(Context& context, const ConvProblem& problem) {
  return tma_gemm().device_refusal(context, problem.request.precision);
}

double channels_last_seconds(Context&, const ConvProblem& problem) {
  if (lies_channels_last(problem)) return 0;
  Gemm gemm = conv_forward_gemm(problem.sizes);  // of all passes, so that all take the same layout
  gemm.b.is_channels_last = is_whole_blocks(problem.sizes.c) || has_few_channels(problem.sizes);
  return is_for_matrix_cores(gemm) ? 0 : INFINITY;
}

EpilogueText channels_last_epilogue(const ConvProblem& problem) {
  if (problem.epilogue == nullptr) return {};
  if (!gives_channels_last(problem)) return conv_epilogue(problem);
  return block_epilogue(problem.request, *problem.epilogue).value();
}

std::optional<Gemm> channels_last_weights_product(Context& context, const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const bool is_its_own = is_whole_blocks(s.c) && is_whole_blocks(s.o) && !leaves_taps_outside(problem) &&
                          channels_last_conv_refusal(context, problem).empty() &&
                          channels_last_seconds(context, problem) == 0 &&
                          channels_last_device_refusal(context, problem).empty();
  return is_its_own ? std::optional(products_of(problem).front()) : std::nullopt;
}

PreparedKernel prepared_channels_last(const ConvProblem& problem, std::unique_ptr<Kernel> kernel,
                                      const Layout& filters) {
  const KernelRequest& request = problem.request;
  const bool is_src = is_whole_blocks(problem.sizes.c), is_dst = is_whole_blocks(problem.sizes.o);
  std::vector<std::size_t> images, results;
  if (problem.pass == ConvPass::backward_data ? is_dst : is_src) images.push_back(0);
  if (problem.pass == ConvPass::backward_weights && is_dst) images.push_back(1);
  if (gives_channels_last(problem)) {
    results.push_back(0);
    for (const std::size_t i : like_result(request, request.inputs)) {
      if (i >= 2) images.push_back(i);  // what the epilogue reads, behind the image and the weights
    }
  }
  PreparedKernel prepared = prepared_channels_last(request, std::move(kernel), images, results);
  if (filters != nullptr) prepared.input_layouts[1] = filters;
  return prepared;
}

extern const ConvImplementation kChannelsLastConv{.name = "channels-last",
                                                  .alternative = alternative::kChannelsLast,
                                                  .refusal = channels_last_conv_refusal,
                                                  .seconds = channels_last_seconds,
                                                  .prepare = prepare_channels_last,
                                                  .device_refusal = channels_last_device_refusal};

}  // namespace concord::opencl
