// The passes of a convolution on images that lie channels-last, which the copy engine takes as they are.
#include "concord/opencl/formula/channels_last.hpp"

#include <array>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/as_gemm.hpp"
#include "concord/opencl/conv/channels_last.hpp"
#include "concord/opencl/conv/depthwise_channels_last.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord/opencl/conv/row_unrolled.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"

namespace concord::opencl {
namespace {

const GemmImplementation& tma() { return *find_gemm_implementation("tma"); }

bool is_whole_blocks(std::int64_t channels) { return channels % ChannelsLast::kBlock == 0; }

/// Whether a convolution's images are stored so in this precision: all three passes answer alike. CONCORD_STORAGE=fp32
/// keeps them in fp32; so does a named way to compute products or convolutions.
bool stores(Context& context, const ops::ConvSizes& s, Precision precision, const TensorSpec& src,
            const TensorSpec& dst) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return false;
  if (debug_choice("storage", {"fp32"}) || debug_option("gemm") || debug_option("conv")) return false;
  const bool is_image = s.options.groups == 1 && s.d == 1 && s.kd == 1 && s.od == 1 && s.options.padding[0] == 0;
  const auto can = [&](const TensorSpec& image) { return channels_last(image, storage_number(precision)) != nullptr; };
  if (!context.limits().is_nvidia || !is_image || !can(dst) || (is_whole_blocks(s.c) && !can(src))) return false;
  Gemm forward = conv_forward_gemm(s);
  forward.precision = precision;
  KernelVariants& variants = context.variants();
  if (variants.preferred(variant::kProduct).value_or("tma") != "tma") return false;
  return variants.may(std::string(variant::kProduct) + "tma") &&
         variants.takes(variant::kChannelsLast, is_for_matrix_units(forward)) &&
         tma().device_refusal(context, precision).empty();
}

/// The kernel's layouts: of the inputs `images`, and where the result lies so of it and what the epilogue reads.
PreparedKernel answer(const KernelRequest& request, std::unique_ptr<Kernel> kernel, std::vector<std::size_t> images,
                      bool result) {
  constexpr std::array<std::size_t, 1> kFirst{0};
  if (!result) return prepared_channels_last(request, std::move(kernel), images, {});
  for (const std::size_t i : like_result(request, request.inputs)) {
    if (i >= 2) images.push_back(i);  // behind the image and the weights
  }
  return prepared_channels_last(request, std::move(kernel), images, kFirst);
}

/// Nothing where the expression reads what the kernel cannot.
std::optional<EpilogueText> text_of(const KernelRequest& request, const Epilogue* epilogue) {
  return epilogue == nullptr ? EpilogueText{} : block_epilogue(request, *epilogue);
}

}  // namespace

std::optional<PreparedKernel> conv_forward_channels_last(Context& context, const ops::ConvSizes& s,
                                                         const KernelRequest& request, std::string_view label,
                                                         const Epilogue* epilogue) {
  if (auto depthwise = conv_depthwise_forward_channels_last(context, s, request, label, epilogue)) return depthwise;
  if (!stores(context, s, request.precision, request.inputs[0], request.outputs[0])) return {};
  const std::optional<EpilogueText> text = text_of(request, epilogue);
  if (!text) return {};
  Gemm gemm = conv_lines_serve(s) ? conv_lines_forward_gemm(context, s, request.precision) : conv_forward_gemm(s);
  gemm.precision = request.precision;
  gemm.epilogue = *text;
  if (is_whole_blocks(s.c)) gemm.b.is_channels_last = true;
  gemm.c.is_channels_last = true;
  if (!tma().refusal(context, gemm).empty()) return {};
  std::vector<std::size_t> images;
  if (is_whole_blocks(s.c)) images.push_back(0);
  return answer(request, prepare_gemm(context, gemm, label), images, true);
}

std::optional<PreparedKernel> conv_backward_data_channels_last(Context& context, const ops::ConvSizes& s,
                                                               const KernelRequest& request, std::string_view label,
                                                               const Epilogue* epilogue) {
  if (epilogue == nullptr) {
    if (auto depthwise = conv_depthwise_backward_data_channels_last(context, s, request, label)) return depthwise;
  }
  if (!stores(context, s, request.precision, request.outputs[0], request.inputs[0]) || !is_whole_blocks(s.c)) return {};
  const std::optional<EpilogueText> text = text_of(request, epilogue);
  if (!text) return {};
  const bool in_phases = s.options.stride != ops::Spatial{1, 1, 1};
  std::vector<Gemm> products;
  if (in_phases) {
    if (!conv_phases_serve(s)) return {};
    products = conv_backward_data_phases(s).products;
  } else {
    products = {conv_backward_data_gemm(s)};
  }
  for (Gemm& gemm : products) {
    gemm.precision = request.precision;
    gemm.epilogue = *text;
    gemm.b.is_channels_last = gemm.c.is_channels_last = true;
    if (!tma().refusal(context, gemm).empty()) return {};
  }
  return answer(request,
                in_phases ? conv_backward_data_by_phases(context, s, request.precision, label, *text, true)
                          : prepare_gemm(context, products.front(), label),
                {0}, true);
}

std::optional<PreparedKernel> conv_backward_weights_channels_last(Context& context, const ops::ConvSizes& s,
                                                                  const KernelRequest& request,
                                                                  std::string_view label) {
  if (auto depthwise = conv_depthwise_backward_weights_channels_last(context, s, request, label)) return depthwise;
  if (!stores(context, s, request.precision, request.inputs[0], request.inputs[1])) return {};
  std::optional<Stage> last;
  Gemm gemm;
  if (conv_lines_serve(s)) {
    ConvLinesGradient lines = conv_lines_backward_weights_gemm(context, s, request.precision);
    gemm = std::move(lines.gemm);
    last = std::move(lines.last);
  } else {
    gemm = conv_backward_weights_gemm(s);
    gemm.b.is_channels_last = is_whole_blocks(s.c);
  }
  gemm.precision = request.precision;
  gemm.a.is_channels_last = true;
  if (!tma().refusal(context, gemm).empty()) return {};
  std::vector<std::size_t> images{1};
  if (is_whole_blocks(s.c)) images.push_back(0);
  std::unique_ptr<Kernel> kernel = prepare_gemm(context, gemm, label);
  if (last) {
    std::vector<StagedKernel::AnyStage> stages = dynamic_cast<const StagedKernel&>(*kernel).stages();
    stages.emplace_back(*last);
    kernel = std::make_unique<StagedKernel>(context, kernel->name(), std::move(stages), kernel->workspace());
  }
  return answer(request, std::move(kernel), images, false);
}

}  // namespace concord::opencl
