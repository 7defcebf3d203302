// The three passes of a convolution as products over patches (implicit GEMM).
#include <algorithm>

#include "concord/opencl/conv.hpp"

namespace concord::opencl {
namespace {

struct Planes {
  std::int64_t group_c, group_o, taps, src, dst;  // channels of a group; elements of a kernel plane and of image planes
};
Planes planes_of(const ops::ConvSizes& s) {
  return {s.c / s.options.groups, s.o / s.options.groups, s.kh * s.kw, s.h * s.w, s.oh * s.ow};
}

std::int64_t largest_of(const ops::ConvSizes& s) {
  return std::max({s.n * s.c * s.h * s.w, s.n * s.o * s.oh * s.ow, s.o * (s.c / s.options.groups) * s.kh * s.kw});
}

/// The patches that the kernel sees: `taps` runs over (channel, kernel row, kernel column), `places` over (image, row,
/// column) of dst.
struct SrcPatches {
  PatchPart taps, places;
};
SrcPatches patches_of(const ops::ConvSizes& s) {
  const Planes p = planes_of(s);
  return {{p.taps, s.kw, p.src, s.options.dilation[0], s.options.dilation[1]},
          {p.dst, s.ow, s.c * p.src, s.options.stride[0], s.options.stride[1]}};
}

Patch src_patch(const ops::ConvSizes& s, const PatchPart& k, const PatchPart& n) {
  Patch patch{k, n, -s.options.padding[0], -s.options.padding[1], s.h, s.w, 1, 1, false};
  patch.inside = s.options.padding[0] == 0 && s.options.padding[1] == 0;
  return patch;
}

}  // namespace

Gemm conv_forward_gemm(const ops::ConvSizes& s) {
  const Planes p = planes_of(s);
  const SrcPatches patches = patches_of(s);
  Gemm gemm;
  gemm.m = p.group_o;
  gemm.n = s.n * p.dst;
  gemm.k = p.group_c * p.taps;
  gemm.batch = s.options.groups;
  gemm.a = {input(1), gemm.m * gemm.k, gemm.k, 1, 0, 0, false};
  gemm.b = {input(0), p.group_c * p.src, 0, 0, false, 0, true, s.n * s.c * p.src};
  gemm.patch = src_patch(s, patches.taps, patches.places);
  gemm.c = {output(0), p.group_o * p.dst, p.dst, p.dst, s.o * p.dst};
  gemm.largest = largest_of(s);
  return gemm;
}

// diff_src(c, y, x) gathers diff_dst(o, (y + padding − tap·dilation) / stride) where that is whole and inside.
Gemm conv_backward_data_gemm(const ops::ConvSizes& s) {
  const Planes p = planes_of(s);
  Gemm gemm;
  gemm.m = p.group_c;
  gemm.n = s.n * p.src;
  gemm.k = p.group_o * p.taps;
  gemm.batch = s.options.groups;
  gemm.a = {input(1), p.group_o * p.group_c * p.taps, p.taps, 1, p.taps, p.group_c * p.taps, false};
  const PatchPart taps{p.taps, s.kw, p.dst, -s.options.dilation[0], -s.options.dilation[1]};
  const PatchPart places{p.src, s.w, s.o * p.dst, 1, 1};
  gemm.b = {input(0), p.group_o * p.dst, 0, 0, false, 0, true, s.n * s.o * p.dst};
  gemm.patch = {taps, places, s.options.padding[0], s.options.padding[1],
                s.oh, s.ow,   s.options.stride[0],  s.options.stride[1],
                false};
  gemm.c = {output(0), p.group_c * p.src, p.src, p.src, s.c * p.src};
  gemm.largest = largest_of(s);
  return gemm;
}

Gemm conv_backward_weights_gemm(const ops::ConvSizes& s) {
  const Planes p = planes_of(s);
  const SrcPatches patches = patches_of(s);
  Gemm gemm;
  gemm.m = p.group_o;
  gemm.n = p.group_c * p.taps;
  gemm.k = s.n * p.dst;
  gemm.batch = s.options.groups;
  gemm.a = {input(1), p.group_o * p.dst, p.dst, 1, p.dst, s.o * p.dst, false};
  gemm.b = {input(0), p.group_c * p.src, 0, 0, true, 0, true, s.n * s.c * p.src};
  gemm.patch = src_patch(s, patches.places, patches.taps);
  gemm.c = {output(0), gemm.m * gemm.n, gemm.n, 0, 0};
  gemm.largest = largest_of(s);
  return gemm;
}

Gemm conv_backward_weights_transposed_gemm(Context& context, const ops::ConvSizes& s) {
  const std::int64_t height = s.h + 2 * s.options.padding[0], width = s.w + 2 * s.options.padding[1];
  ops::ConvSizes padded = s;
  padded.h = height;
  padded.w = width;
  padded.options.padding = {0, 0};
  const Planes p = planes_of(padded);
  const SrcPatches patches = patches_of(padded);
  Gemm gemm;
  gemm.m = p.group_c * p.taps;
  gemm.n = p.group_o;
  gemm.k = s.n * p.dst;
  gemm.batch = s.options.groups;
  gemm.a = {input(0), p.group_c * p.src, 0, 0, 0, 0, true};
  gemm.patch = src_patch(padded, patches.places, patches.taps);
  gemm.b = {input(1), p.group_o * p.dst, s.o * p.dst, p.dst, true, p.dst, false, 0};
  gemm.c = {output(0), gemm.m * gemm.n, 1, 1, gemm.m};
  gemm.largest = largest_of(padded);
  if (height != s.h || width != s.w) {
    const std::int64_t elements = s.n * s.c * height * width;
    gemm.before_bytes = (static_cast<std::size_t>(elements) * sizeof(float) + 255) / 256 * 256;
    gemm.a.buffer = workspace();
    std::vector<Argument> arguments{input(0), workspace()};
    for (const std::int64_t value : {s.h, s.w, s.options.padding[0], s.options.padding[1]}) {
      arguments.emplace_back(static_cast<std::int32_t>(value));
    }
    gemm.before.push_back({context.program("conv.cl"),
                           "conv_pad",
                           std::move(arguments),
                           {static_cast<std::size_t>(height), static_cast<std::size_t>(s.n * s.c), 1},
                           {0, 0, 0}});
  }
  return gemm;
}

}  // namespace concord::opencl
