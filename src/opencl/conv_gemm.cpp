// The three passes of a convolution as products over patches (implicit GEMM).
#include <algorithm>

#include "concord/opencl/conv.hpp"

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
    const std::int64_t elements = s.n * s.c * padded.src_plane();
    gemm.before_bytes = (static_cast<std::size_t>(elements) * sizeof(float) + 255) / 256 * 256;
    gemm.a.buffer = workspace();
    std::vector<Argument> arguments{input(0), workspace()};
    for (const std::int64_t value : {s.d, s.h, s.w, padded.d, padded.h, padded.w, s.options.padding[0],
                                     s.options.padding[1], s.options.padding[2]}) {
      arguments.emplace_back(static_cast<std::int32_t>(value));
    }
    gemm.before.push_back({context.program("conv.cl"),
                           "conv_pad",
                           std::move(arguments),
                           {static_cast<std::size_t>(padded.d * padded.h), static_cast<std::size_t>(s.n * s.c), 1},
                           {0, 0, 0}});
  }
  return gemm;
}

}  // namespace concord::opencl
