// The passes of a convolution on images that lie channels-last, which the copy engine takes as they are.
#include "concord/opencl/conv/channels_last.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"

namespace concord::opencl {
namespace {

bool is_whole_blocks(std::int64_t channels) { return channels % ChannelsLast::kBlock == 0; }

bool is_strided(const ops::ConvSizes& s) { return s.options.stride != ops::Spatial{1, 1, 1}; }

/// One, or one for each phase of a data gradient's stride.
std::vector<Gemm> products_of(const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  std::vector<Gemm> products;
  if (problem.pass == ConvPass::forward) {
    products = {conv_forward_gemm(s)};
    products[0].b.is_channels_last = is_whole_blocks(s.c);
    products[0].c.is_channels_last = true;
  } else if (problem.pass == ConvPass::backward_weights) {
    products = {conv_backward_weights_gemm(s)};
    products[0].a.is_channels_last = true;
    products[0].b.is_channels_last = is_whole_blocks(s.c);
  } else {
    if (is_strided(s)) {
      products = conv_polyphase(s).products;
    } else {
      products = {conv_backward_data_gemm(s)};
    }
    for (Gemm& gemm : products) gemm.b.is_channels_last = gemm.c.is_channels_last = true;
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
    if (const std::string_view why = conv_polyphase_refusal(s); !why.empty()) return why;
  }
  for (const Gemm& gemm : products_of(problem)) {
    if (const std::string_view why = tma_gemm().refusal(context, gemm); !why.empty()) return why;
  }
  return kNoRefusal;
}

PreparedKernel prepare_channels_last(Context& context, const ConvProblem& problem) {
  const EpilogueText epilogue = channels_last_epilogue(problem);
  if (problem.pass == ConvPass::backward_data && is_strided(problem.sizes)) {
    return prepared_channels_last(problem, prepare_polyphase(context, problem, epilogue, true));
  }
  Gemm gemm = products_of(problem).front();
  gemm.epilogue = epilogue;
  return prepared_channels_last(problem, prepare_gemm(context, gemm, problem.label));
}

/// Whether an image of more than a pixel lies channels-last already: another layout costs reorders.
bool lies_channels_last(const ConvProblem& problem) {
  const KernelRequest& request = problem.request;
  const std::size_t images = problem.pass == ConvPass::backward_weights ? 2 : 1;  // behind them: weights
  return problem.sizes.dst_plane() > 1 &&
         std::ranges::any_of(std::span(request.input_layouts).first(images),
                             [](const Layout& layout) { return as_channels_last(layout) != nullptr; });
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
  if (channels_last(problem.dst(), number) == nullptr ||
      (is_whole_blocks(s.c) && channels_last(problem.src(), number) == nullptr)) {
    return "an image cannot lie channels-last";
  }
  if (problem.epilogue == nullptr) return kNoRefusal;
  return block_epilogue(problem.request, *problem.epilogue) ? kNoRefusal : kEpilogueOperand;
}

std::string_view channels_last_device_refusal(Context& context, const ConvProblem& problem) {
  return tma_gemm().device_refusal(context, problem.request.precision);
}

double channels_last_seconds(Context&, const ConvProblem& problem) {
  if (lies_channels_last(problem)) return 0;
  Gemm gemm = conv_forward_gemm(problem.sizes);  // of all passes, so that all take the same layout
  gemm.b.is_channels_last = is_whole_blocks(problem.sizes.c);
  return is_for_matrix_cores(gemm) ? 0 : INFINITY;
}

EpilogueText channels_last_epilogue(const ConvProblem& problem) {
  return problem.epilogue == nullptr ? EpilogueText{} : block_epilogue(problem.request, *problem.epilogue).value();
}

PreparedKernel prepared_channels_last(const ConvProblem& problem, std::unique_ptr<Kernel> kernel) {
  constexpr std::array<std::size_t, 1> kFirst{0};
  const KernelRequest& request = problem.request;
  const bool is_whole = is_whole_blocks(problem.sizes.c);
  if (problem.pass == ConvPass::backward_weights) {
    std::vector<std::size_t> images{1};
    if (is_whole) images.push_back(0);
    return prepared_channels_last(request, std::move(kernel), images, {});
  }
  std::vector<std::size_t> images;
  if (problem.pass == ConvPass::backward_data || is_whole) images.push_back(0);
  for (const std::size_t i : like_result(request, request.inputs)) {
    if (i >= 2) images.push_back(i);  // what the epilogue reads, behind the image and the weights
  }
  return prepared_channels_last(request, std::move(kernel), images, kFirst);
}

extern const ConvImplementation kChannelsLastConv{.name = "channels-last",
                                                  .alternative = alternative::kChannelsLast,
                                                  .refusal = channels_last_conv_refusal,
                                                  .seconds = channels_last_seconds,
                                                  .prepare = prepare_channels_last,
                                                  .device_refusal = channels_last_device_refusal};

}  // namespace concord::opencl
