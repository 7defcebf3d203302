// The three passes of a convolution as products over patches (implicit GEMM).
#include "concord/opencl/conv/as_gemm.hpp"

#include <algorithm>
#include <array>

#include "concord/opencl/conv/depthwise.hpp"

namespace concord::opencl {
namespace {

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

/// How far the window reaches beyond its first pixel.
PatchSizes reach_of(const ops::ConvSizes& s) {
  const ops::Spatial& d = s.options.dilation;
  return {d[0] * (s.kd - 1), d[1] * (s.kh - 1), d[2] * (s.kw - 1)};
}

/// Lets the left operand, `planes` planes of input 0, be read from the workspace, copied there with zeros around.
void pad_left(Context& context, Gemm& gemm, std::int64_t planes, const PatchSizes& from, const PatchSizes& to,
              const PatchSizes& before) {
  const std::int64_t elements = planes * to[0] * to[1] * to[2];
  gemm.before_bytes = (static_cast<std::size_t>(elements) * sizeof(float) + 255) / 256 * 256;
  gemm.a.buffer = workspace();
  std::vector<Argument> arguments{input(0), workspace()};
  for (const PatchSizes& sizes : {from, to, before}) {
    for (const std::int64_t value : sizes) arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  gemm.before.push_back({context.program("conv/pad.cl"),
                         "conv_pad",
                         std::move(arguments),
                         {static_cast<std::size_t>(to[0] * to[1]), static_cast<std::size_t>(planes), 1},
                         {0, 0, 0}});
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

Gemm conv_backward_weights_transposed_gemm(Context& context, const ops::ConvSizes& s) {
  const auto wide = [&](std::size_t axis, std::int64_t size) {
    return size + s.options.padding[axis] + s.options.padding_after[axis];
  };
  ops::ConvSizes padded = s;
  padded.d = wide(0, s.d);
  padded.h = wide(1, s.h);
  padded.w = wide(2, s.w);
  padded.options.padding = padded.options.padding_after = {0, 0, 0};
  const SrcPatches patches = patches_of(padded);
  Gemm gemm;
  gemm.m = s.group_c() * s.taps();
  gemm.n = s.group_o();
  gemm.k = s.n * s.dst_plane();
  gemm.batch = s.options.groups;
  gemm.a = {input(0), s.group_c() * padded.src_plane(), 0, 0, 0, 0, true};
  gemm.patch = src_patch(padded, patches.places, patches.taps);
  gemm.b = {input(1), s.group_o() * s.dst_plane(), s.o * s.dst_plane(), s.dst_plane(), true, s.dst_plane(), false, 0};
  gemm.c = {output(0), gemm.m * gemm.n, 1, 1, gemm.m};
  gemm.largest = largest_of(padded);
  if (s.is_padded()) {
    pad_left(context, gemm, s.n * s.c, {s.d, s.h, s.w}, {padded.d, padded.h, padded.w}, s.options.padding);
  }
  return gemm;
}

bool conv_pixels_serve(const ops::ConvSizes& s) {
  const ops::ConvOptions& o = s.options;
  if (o.groups != 1 || s.taps() == 1 || 2 * s.c > s.src_plane() || o.stride != ops::Spatial{1, 1, 1}) return false;
  const PatchSizes reach = reach_of(s);
  return std::ranges::all_of(std::array{0U, 1U, 2U}, [&](std::size_t axis) {
    return o.padding[axis] <= reach[axis] && o.padding_after[axis] <= reach[axis];
  });
}

Gemm conv_backward_data_pixels_gemm(Context& context, const ops::ConvSizes& s) {
  const PatchSizes reach = reach_of(s), dst{s.od, s.oh, s.ow};
  const PatchSizes padded{s.d + reach[0], s.h + reach[1], s.w + reach[2]};
  const std::int64_t padded_plane = padded[0] * padded[1] * padded[2];
  Gemm gemm;
  gemm.m = s.src_plane();
  gemm.n = s.c;
  gemm.k = s.o * s.taps();
  gemm.batch = s.n;
  gemm.a = {input(0), s.o * padded_plane, 0, 0, 0, 0, true};
  const PatchPart taps{s.taps(), s.kh * s.kw, s.kw, padded_plane, negated(s.options.dilation)};
  const PatchPart places{s.src_plane(), s.h * s.w, s.w, 0, {1, 1, 1}};
  gemm.patch = {taps, places, reach, padded, {1, 1, 1}, true};
  drop_flat_depth(s, gemm.patch);
  gemm.b = {input(1), 0, s.c * s.taps(), s.taps(), true, s.taps(), false, 0};
  gemm.c = {output(0), s.c * s.src_plane(), 1, 1, s.src_plane()};
  gemm.largest = std::max(largest_of(s), s.n * s.o * padded_plane);
  if (padded != dst) {
    const ops::Spatial& padding = s.options.padding;
    pad_left(context, gemm, s.n * s.o, dst, padded,
             {reach[0] - padding[0], reach[1] - padding[1], reach[2] - padding[2]});
  }
  return gemm;
}

}  // namespace concord::opencl
