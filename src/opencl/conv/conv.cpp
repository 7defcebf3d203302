// Convolution and its two gradients: the list of the implementations and the choice among them. The last of the list
// computes everything, as one implicit GEMM.
#include "concord/opencl/conv/conv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/choice_log.hpp"

namespace concord::opencl {

extern const ConvImplementation kDepthwiseChannelsLastConv, kRowUnrolledConv, kChannelsLastConv, kDepthwiseConv,
    kSinglePixelConv, kWinogradConv, kPolyphaseConv, kIm2colConv, kLeftPatchesConv, kGemmConv;

namespace {

/// The best first; the last computes everything.
constexpr std::array<const ConvImplementation*, 10> kConvImplementations{
    &kDepthwiseChannelsLastConv, &kRowUnrolledConv, &kChannelsLastConv, &kDepthwiseConv,
    &kSinglePixelConv,           &kWinogradConv,    &kPolyphaseConv,    &kIm2colConv,
    &kLeftPatchesConv,           &kGemmConv};

/// Without the check on the device.
std::string_view cheap_refusal(const ConvImplementation& one, const Context& context, const ConvProblem& problem) {
  if (!one.alternative.empty() && !context.alternatives().is_enabled(one.alternative)) return "it is disabled";
  return one.refusal(context, problem);
}

/// Whether the device's user prefers it to faster ones.
bool is_preferred(const ConvImplementation& one, const Context& context) {
  return !one.alternative.empty() && context.alternatives().preferred(one.alternative) == "";
}

/// Of those that refuse nothing, the one with the least expected time, the first of several.
const ConvImplementation& planned(Context& context, const ConvProblem& problem, ChoiceLog& choice) {
  const ConvImplementation* chosen = nullptr;
  double least = INFINITY;
  for (const ConvImplementation* one : kConvImplementations) {
    if (const std::string_view why = cheap_refusal(*one, context, problem); !why.empty()) {
      choice.refused(one->name, why);
      continue;
    }
    // No time is computed where there is nothing to compare it with.
    const bool is_left_alone = one == &kGemmConv && chosen == nullptr;
    const double seconds = least == 0                                     ? INFINITY
                           : is_left_alone || is_preferred(*one, context) ? 0
                                                                          : one->seconds(context, problem);
    if (!(seconds < least)) {
      choice.slower(one->name, seconds);
    } else if (const std::string_view why = one->device_refusal(context, problem); !why.empty()) {
      choice.refused(one->name, why);
    } else {
      if (chosen != nullptr) choice.slower(chosen->name, least);
      chosen = one;
      least = seconds;
    }
  }
  return *chosen;
}

/// The one that CONCORD_DEBUG=conv=NAME names; null for none.
const ConvImplementation* named_implementation() {
  std::optional<std::string> name = debug_option("conv");
  if (!name) return nullptr;
  if (name == "phases") name = "polyphase";  // its earlier name
  const auto* const found = std::ranges::find(kConvImplementations, *name, &ConvImplementation::name);
  CONCORD_CHECK(found != kConvImplementations.end(), ArgumentError, "CONCORD_DEBUG: conv is \"{}\"; there are {}",
                *name, names_of(kConvImplementations));
  return *found;
}

/// The named one, also where it is disabled, and one GEMM where that refuses.
const ConvImplementation& chosen_for(Context& context, const ConvProblem& problem, ChoiceLog& choice) {
  const ConvImplementation* const named = named_implementation();
  if (named == nullptr) return planned(context, problem, choice);
  if (named != &kGemmConv) {
    std::string_view why = named->refusal(context, problem);
    if (why.empty()) why = named->device_refusal(context, problem);
    if (why.empty()) return *named;
    choice.refused(named->name, why);
  }
  return kLeftPatchesConv.refusal(context, problem).empty() ? kLeftPatchesConv : kGemmConv;
}

PreparedKernel prepare_conv(Context& context, const ConvProblem& problem) {
  ChoiceLog choice;
  const ConvImplementation& chosen = chosen_for(context, problem, choice);
  if (choice.is_heard()) choice.write(context.name(), problem.str(), chosen.name);
  if (!chosen.alternative.empty()) context.alternatives().count(chosen.alternative);
  return chosen.prepare(context, problem);
}

template <class Op>
constexpr ConvPass kPass = ConvPass::forward;
template <>
constexpr ConvPass kPass<ops::ConvBackwardData> = ConvPass::backward_data;
template <>
constexpr ConvPass kPass<ops::ConvBackwardWeights> = ConvPass::backward_weights;

template <class Op>
PreparedKernel prepare_alone(Context& context, const Op& op, const KernelRequest& request) {
  return prepare_conv(context, {kPass<Op>, op.sizes(request.inputs), request, op.name()});
}

template <class Op>
PreparedKernel prepare_fused(Context& context, const Op& op, const KernelRequest& request, const Epilogue& epilogue) {
  const ops::ConvSizes sizes = op.sizes(std::span(request.inputs).first(2));
  return prepare_conv(context, {kPass<Op>, sizes, request, op.name(), &epilogue});
}

template <class Op>
bool supports_epilogue(const Op&, std::span<const TensorSpec>, const TensorSpec& output, const Expression& epilogue,
                       std::span<const TensorSpec> extra) {
  return conv_supports_epilogue(output, epilogue, extra);
}

std::int64_t largest_of(const ops::ConvSizes& s) {
  return std::max({s.n * s.c * s.src_plane(), s.n * s.o * s.dst_plane(), s.o * s.group_c() * s.taps()});
}

/// The patches that the kernel sees: `taps` runs over (channel, kernel slice, row, column), `places` over (image,
/// slice, row, column) of dst.
struct SrcPatches {
  PatchPart taps, places;
};
SrcPatches patches_of(const ops::ConvSizes& s) {
  return {{s.taps(), s.kh * s.kw, s.kw, s.src_plane(), s.options.dilation},
          {s.dst_plane(), s.oh * s.ow, s.ow, s.c * s.src_plane(), s.options.stride}};
}

PatchSizes negated(const PatchSizes& v) { return {-v[0], -v[1], -v[2]}; }

/// Of signals and images the kernels need not know that they have a depth.
void drop_flat_depth(const ops::ConvSizes& s, Patch& patch) {
  if (s.d != 1 || s.kd != 1 || s.od != 1 || s.options.padding[0] != 0) return;
  patch.k.move[0] = patch.n.move[0] = patch.shift[0] = 0;
  patch.step[0] = 1;
}

Patch src_patch(const ops::ConvSizes& s, const PatchPart& k, const PatchPart& n) {
  Patch patch{k, n, negated(s.options.padding), {s.d, s.h, s.w}, {1, 1, 1}, !s.is_padded()};
  drop_flat_depth(s, patch);
  return patch;
}

Gemm gemm_of(const ops::ConvSizes& s, ConvPass pass) {
  if (pass == ConvPass::forward) return conv_forward_gemm(s);
  return pass == ConvPass::backward_data ? conv_backward_data_gemm(s) : conv_backward_weights_gemm(s);
}

PreparedKernel prepare_as_gemm(Context& context, const ConvProblem& problem) {
  Gemm gemm = gemm_of(problem.sizes, problem.pass);
  gemm.precision = problem.request.precision;
  gemm.epilogue = conv_epilogue(problem);
  return prepared(problem.request, prepare_gemm(context, gemm, problem.label));
}

}  // namespace

Gemm conv_forward_gemm(const ops::ConvSizes& s) {
  const SrcPatches patches = patches_of(s);
  Gemm gemm;
  gemm.m = s.group_o();
  gemm.n = s.n * s.dst_plane();
  gemm.k = s.group_c() * s.taps();
  gemm.batch = s.options.groups;
  gemm.a = {input(1), gemm.m * gemm.k, gemm.k, 1, 0, 0, false};
  gemm.b = {input(0), s.group_c() * s.src_plane(), 0, 0, false, 0, true, s.n * s.c * s.src_plane()};
  gemm.patch = src_patch(s, patches.taps, patches.places);
  gemm.c = {output(0), s.group_o() * s.dst_plane(), s.dst_plane(), s.dst_plane(), s.o * s.dst_plane()};
  gemm.largest = largest_of(s);
  return gemm;
}

// diff_src(c, y, x) gathers diff_dst(o, (y + padding − tap·dilation) / stride) where that is whole and inside.
Gemm conv_backward_data_gemm(const ops::ConvSizes& s) {
  Gemm gemm;
  gemm.m = s.group_c();
  gemm.n = s.n * s.src_plane();
  gemm.k = s.group_o() * s.taps();
  gemm.batch = s.options.groups;
  gemm.a = {input(1), s.group_o() * s.group_c() * s.taps(), s.taps(), 1, s.taps(), s.group_c() * s.taps(), false};
  if (s.taps() == 1) gemm.a = {input(1), s.group_o() * s.group_c(), 1, s.group_c(), 0, 0, false};
  const PatchPart taps{s.taps(), s.kh * s.kw, s.kw, s.dst_plane(), negated(s.options.dilation)};
  const PatchPart places{s.src_plane(), s.h * s.w, s.w, s.o * s.dst_plane(), {1, 1, 1}};
  gemm.b = {input(0), s.group_o() * s.dst_plane(), 0, 0, false, 0, true, s.n * s.o * s.dst_plane()};
  gemm.patch = {taps, places, s.options.padding, {s.od, s.oh, s.ow}, s.options.stride, false};
  drop_flat_depth(s, gemm.patch);
  gemm.c = {output(0), s.group_c() * s.src_plane(), s.src_plane(), s.src_plane(), s.c * s.src_plane()};
  gemm.largest = largest_of(s);
  return gemm;
}

Gemm conv_backward_weights_gemm(const ops::ConvSizes& s) {
  const SrcPatches patches = patches_of(s);
  Gemm gemm;
  gemm.m = s.group_o();
  gemm.n = s.group_c() * s.taps();
  gemm.k = s.n * s.dst_plane();
  gemm.batch = s.options.groups;
  gemm.a = {input(1), s.group_o() * s.dst_plane(), s.dst_plane(), 1, s.dst_plane(), s.o * s.dst_plane(), false};
  gemm.b = {input(0), s.group_c() * s.src_plane(), 0, 0, true, 0, true, s.n * s.c * s.src_plane()};
  gemm.patch = src_patch(s, patches.places, patches.taps);
  gemm.c = {output(0), gemm.m * gemm.n, gemm.n, 0, 0};
  gemm.largest = largest_of(s);
  return gemm;
}

double multiplications(const Gemm& gemm) {
  return static_cast<double>(gemm.batch * gemm.m * gemm.n) * static_cast<double>(gemm.k);
}

double conv_gemm_seconds(Context& context, const ops::ConvSizes& sizes, ConvPass pass) {
  constexpr double kGathered = 40;  // multiplications in the time that a float takes to be gathered
  const Gemm gemm = gemm_of(sizes, pass);
  if (!context.limits().is_cpu) return planned_seconds(context, gemm);
  const double gathered = pass == ConvPass::backward_weights ? 0 : static_cast<double>(gemm.n * gemm.k);
  return (multiplications(gemm) + gathered * kGathered) / kCpuProductsASecond / context.limits().compute_units;
}

extern const ConvImplementation kGemmConv{
    .name = "gemm",
    .refusal = [](const Context&, const ConvProblem&) { return kNoRefusal; },
    .seconds = [](Context& context,
                  const ConvProblem& problem) { return conv_gemm_seconds(context, problem.sizes, problem.pass); },
    .prepare = prepare_as_gemm};

void add_conv(Kernels& kernels) {
  kernels.add<ops::Conv, prepare_alone>();
  kernels.add<ops::ConvBackwardData, prepare_alone>();
  kernels.add<ops::ConvBackwardWeights, prepare_alone>();
  kernels.add_fused<ops::Conv, supports_epilogue, prepare_fused>();
  kernels.add_fused<ops::ConvBackwardData, supports_epilogue, prepare_fused>();
}

}  // namespace concord::opencl
