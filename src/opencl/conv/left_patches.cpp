// The gradients of a convolution as GEMMs for CPUs, which read the left operand element by element: there the patches
// of an image cost nothing, whereas those of a right operand are gathered. A launch before the product surrounds the
// image with zeros.
#include <algorithm>
#include <array>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/conv/implementation.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// How far the window reaches beyond its first pixel.
PatchSizes reach_of(const ops::ConvSizes& s) {
  const ops::Spatial& d = s.options.dilation;
  return {d[0] * (s.kd - 1), d[1] * (s.kh - 1), d[2] * (s.kw - 1)};
}

/// Lets the left operand, so many images of input 0, be read from the workspace, copied there with zeros around.
void pad_left(Context& context, Gemm& gemm, std::int64_t images, const PatchSizes& from, const PatchSizes& to,
              const PatchSizes& before) {
  const std::int64_t elements = images * to[0] * to[1] * to[2];
  gemm.before_bytes = aligned(size(elements) * sizeof(float));
  gemm.a.buffer = workspace();
  std::vector<Argument> arguments{input(0), workspace()};
  for (const PatchSizes& sizes : {from, to, before}) {
    for (const std::int64_t value : sizes) arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  gemm.before.push_back({context.program("conv/pad.cl"),
                         "conv_pad",
                         std::move(arguments),
                         {static_cast<std::size_t>(to[0] * to[1]), static_cast<std::size_t>(images), 1},
                         {0, 0, 0}});
}

/// inputs diff_dst, weights: rows are pixels of an image, columns channels, batches images.
Gemm backward_data_gemm(Context& context, const ops::ConvSizes& s) {
  const PatchSizes reach = reach_of(s), dst{s.od, s.oh, s.ow};
  // The convolution whose result has all that a window of diff_src meets.
  ops::ConvSizes padded = s;
  padded.od = s.d + reach[0];
  padded.oh = s.h + reach[1];
  padded.ow = s.w + reach[2];
  padded.options.padding = padded.options.padding_after = reach;
  const Gemm by_channels = conv_backward_data_gemm(padded);
  Gemm gemm;
  gemm.m = s.src_plane();
  gemm.n = s.c;
  gemm.k = by_channels.k;
  gemm.batch = s.n;
  gemm.a = {input(0), s.o * padded.dst_plane(), 0, 0, 0, 0, true};
  gemm.patch = by_channels.patch;
  gemm.patch.n.plane = 0;  // a batch is one image
  gemm.patch.inside = true;
  gemm.b = {input(1), 0, s.c * s.taps(), s.taps(), true, s.taps(), false, 0};
  gemm.c = {output(0), s.c * s.src_plane(), 1, 1, s.src_plane()};
  gemm.largest = by_channels.largest;
  if (const PatchSizes to{padded.od, padded.oh, padded.ow}; to != dst) {
    const ops::Spatial& padding = s.options.padding;
    pad_left(context, gemm, s.n * s.o, dst, to, {reach[0] - padding[0], reach[1] - padding[1], reach[2] - padding[2]});
  }
  return gemm;
}

/// inputs src, diff_dst: conv_backward_weights_gemm with rows and columns exchanged.
Gemm backward_weights_gemm(Context& context, const ops::ConvSizes& s) {
  const auto wide = [&](std::size_t axis, std::int64_t size) {
    return size + s.options.padding[axis] + s.options.padding_after[axis];
  };
  ops::ConvSizes padded = s;
  padded.d = wide(0, s.d);
  padded.h = wide(1, s.h);
  padded.w = wide(2, s.w);
  padded.options.padding = padded.options.padding_after = {0, 0, 0};
  const Gemm straight = conv_backward_weights_gemm(padded);
  Gemm gemm;
  gemm.m = straight.n;
  gemm.n = straight.m;
  gemm.k = straight.k;
  gemm.batch = straight.batch;
  gemm.a = {input(0), straight.b.batch, 0, 0, 0, 0, true};
  gemm.patch = straight.patch;
  gemm.b = {input(1), straight.a.batch, straight.a.outer, straight.a.row, true, straight.a.block, false, 0};
  gemm.c = {output(0), gemm.m * gemm.n, 1, 1, gemm.m};
  gemm.largest = straight.largest;
  if (s.is_padded()) {
    pad_left(context, gemm, s.n * s.c, {s.d, s.h, s.w}, {padded.d, padded.h, padded.w}, s.options.padding);
  }
  return gemm;
}

std::string_view left_patches_refusal(const Context& context, const ConvProblem& problem) {
  if (!context.limits().is_cpu) return "it is for CPUs";
  if (problem.pass == ConvPass::forward) return kOtherPass;
  if (problem.pass == ConvPass::backward_weights || conv_pixels_support(problem.sizes)) return kNoRefusal;
  return "the convolution is strided, grouped or of one tap, or the image is small";
}

PreparedKernel prepare_left_patches(Context& context, const ConvProblem& problem) {
  const bool is_data = problem.pass == ConvPass::backward_data;
  Gemm gemm = is_data ? backward_data_gemm(context, problem.sizes) : backward_weights_gemm(context, problem.sizes);
  gemm.precision = problem.request.precision;
  if (is_data) gemm.epilogue = conv_epilogue_by_pixels(problem);
  return prepared(problem.request, prepare_gemm(context, gemm, problem.label));
}

}  // namespace

bool conv_pixels_support(const ops::ConvSizes& s) {
  const ops::ConvOptions& o = s.options;
  if (o.groups != 1 || s.taps() == 1 || 2 * s.c > s.src_plane() || o.stride != ops::Spatial{1, 1, 1}) return false;
  const PatchSizes reach = reach_of(s);
  return std::ranges::all_of(std::array{0U, 1U, 2U}, [&](std::size_t axis) {
    return o.padding[axis] <= reach[axis] && o.padding_after[axis] <= reach[axis];
  });
}

extern const ConvImplementation kLeftPatchesConv{
    .name = "gemm-left-patches",
    .refusal = left_patches_refusal,
    .seconds = [](Context& context,
                  const ConvProblem& problem) { return conv_gemm_seconds(context, problem.sizes, problem.pass); },
    .prepare = prepare_left_patches};

}  // namespace concord::opencl
