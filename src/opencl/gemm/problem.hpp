// Gemm: describes a matrix multiplication to the GEMM kernels of the OpenCL backend. The operands are strided; the
// right one may be the patches of an image, so that every pass of a convolution is a matrix multiplication. Used by
// matmul and conv.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// Strides are in elements. `row` or `k` is 1.
struct GemmLeft {
  BufferArgument buffer = input(0);
  std::int64_t batch = 0, row = 0, k = 1;
  /// When not 0, k is divided into blocks of this length, `outer` elements apart.
  std::int64_t block = 0, outer = 0;
  /// The operand is read through Gemm::patch, whose `inside` is then true, with the rows as the patch's n.
  bool is_patch = false;
  /// The operand is stored in Gemm::precision with rows inside: (k, row). Strides and blocks are then ignored.
  bool is_channels_last = false;
  /// When not 0, the operand is stored in Gemm::precision as filters (conv/filters.hpp): (row, tap, channel), so many
  /// channels a tap with the padding. Strides and blocks are then ignored.
  std::int64_t filter_channels = 0;
  /// Whether it is stored as the copy engine takes it.
  [[nodiscard]] bool has_16_bits() const { return is_channels_last || filter_channels != 0; }
};

/// One value each for depth, rows and columns of an image.
using PatchSizes = std::array<std::int64_t, 3>;

/// How one of the indices k and n moves over the image: index = p·block + z·page + y·line + x adds p planes of `plane`
/// elements, z·move[0] slices in depth, y·move[1] rows and x·move[2] columns.
struct PatchPart {
  std::int64_t block = 1, page = 1, line = 1, plane = 0;
  PatchSizes move{0, 0, 0};
};

/// B(k, n) = image(planes, slice, row, column) at the sum of the parts of k and n and the shift; 0 outside the image.
/// With steps, slices, rows and columns are in fractions of a pixel, and positions between pixels are 0.
struct Patch {
  PatchPart k, n;
  PatchSizes shift{0, 0, 0}, size{1, 0, 0}, step{1, 1, 1};
  bool inside = false;  // never outside the image
  /// Whether the patch covers more than one slice; otherwise kernels omit the depth.
  [[nodiscard]] bool is_volume() const { return size[0] != 1 || shift[0] != 0 || k.move[0] != 0 || n.move[0] != 0; }
};

struct GemmRight {
  BufferArgument buffer = input(1);
  std::int64_t batch = 0, k = 0, n = 1;
  bool along_k = false;  // neighbours in memory are neighbours in k
  /// When not 0, k is divided into blocks of this length, `k` elements apart; the stride within a block is 1.
  std::int64_t block = 0;
  bool is_patch = false;      // read through Gemm::patch
  std::int64_t elements = 0;  // of the whole operand; for patches
  /// The image is stored in Gemm::precision with the channels inside.
  bool is_channels_last = false;
};

struct GemmResult {
  BufferArgument buffer = output(0);
  std::int64_t batch = 0, row = 0;
  /// When not 0, n is divided into blocks of this length, `outer` elements apart; the stride within a block is 1.
  std::int64_t block = 0, outer = 0;
  /// When line is not 0, the n of a block step over slices, rows and columns of an image: n lies at first + (n /
  /// page)·step[0] + (n % page / line)·step[1] + (n % line)·step[2]. Needs a block.
  std::int64_t page = 0, line = 0, first = 0;
  PatchSizes step{0, 0, 0};
  /// The result is stored in Gemm::precision with all rows inside: the members above give the position of n, and C(m,
  /// n) is value m of the Gemm::m values at that position.
  bool is_channels_last = false;
  /// Of a gradient of weights by "tma": n counts (tap, channel) instead of (channel, tap).
  bool has_taps_outside = false;
  [[nodiscard]] bool is_stepped() const { return line != 0; }
};

/// C(z, m, n) = Σ_k A(z, m, k)·B(z, k, n). The epilogue is applied to each value before it is written.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmLeft a;
  GemmRight b;
  GemmResult c;
  Patch patch;            // of the operand that says is_patch
  EpilogueText epilogue;  // empty for none
  Precision precision = Precision::fp32;
  bool is_scaled = false;     // by "scaled": factors are scaled fp16 numbers (hopper/split_operands.hpp)
  std::int64_t largest = 0;   // elements of the largest operand: decides the width of indices
  std::vector<Stage> before;  // what fills an operand in the workspace, and the bytes it takes
  std::size_t before_bytes = 0;
  bool partial = false;  // of prepare_partial_gemm: to be multiplied by the first stage

  /// Whether an operand is the patches of a volume.
  [[nodiscard]] bool is_volume() const { return (a.is_patch || b.is_patch) && patch.is_volume(); }
  /// Whether an operand or the result is in channels-last layout, or filters: only "tma" supports such problems.
  [[nodiscard]] bool has_channels_last() const { return a.has_16_bits() || b.is_channels_last || c.is_channels_last; }
};

/// The fp32 product of contiguous matrices: A(m, k) stored by rows, or by columns where `a_along_k` is false; B(k, n)
/// stored by rows, or by columns where `b_along_k` is true; C(m, n) stored by rows.
[[nodiscard]] Gemm dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along_k = true,
                              bool b_along_k = false);

/// A tile of an implementation, by its name ("128x64"), and the number of parts of k.
struct GemmTiling {
  std::string tile;
  std::int64_t parts = 1;
  bool operator==(const GemmTiling&) const = default;
};

}  // namespace concord::opencl
