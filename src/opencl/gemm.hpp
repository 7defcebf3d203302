// Gemm: a matrix product as the OpenCL backend describes it to its GEMM kernels — strided operands, or the patches of
// an image as right operand, which makes every pass of a convolution a product. Used by matmul and conv.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/context.hpp"
#include "concord/opencl/pointwise.hpp"
#include "concord/opencl/stage.hpp"

namespace concord::opencl {

/// Strides are in elements. `row` or `k` is 1.
struct GemmLeft {
  BufferArgument buffer = input(0);
  std::int64_t batch = 0, row = 0, k = 1;
  /// When not 0, k runs in blocks of this many, `outer` elements apart.
  std::int64_t block = 0, outer = 0;
  /// Read through Gemm::patch, which is then `inside`, with rows as its n.
  bool is_patch = false;
  /// Stored as numbers of Gemm::precision with rows inside: (k, row). Strides and blocks say nothing then.
  bool is_channels_last = false;
};

/// One number each along depth, rows and columns of an image.
using PatchSizes = std::array<std::int64_t, 3>;

/// How one of the two indices k and n moves over the image: index = (p·block + z·page + y·line + x) adds p planes of
/// `plane` elements, z·move[0] slices in depth, y·move[1] rows and x·move[2] columns.
struct PatchPart {
  std::int64_t block = 1, page = 1, line = 1, plane = 0;
  PatchSizes move{0, 0, 0};
};

/// B(k, n) = image(planes, slice, row, column), the sum of the parts of k and n and the shift; 0 outside the image.
/// With steps, slices, rows and columns count in fractions of a pixel and what is not a whole pixel is 0.
struct Patch {
  PatchPart k, n;
  PatchSizes shift{0, 0, 0}, size{1, 0, 0}, step{1, 1, 1};
  bool inside = false;  // never outside the image
  /// Whether there is more than one slice to look at; otherwise kernels leave the depth out.
  [[nodiscard]] bool is_volume() const { return size[0] != 1 || shift[0] != 0 || k.move[0] != 0 || n.move[0] != 0; }
};

struct GemmRight {
  BufferArgument buffer = input(1);
  std::int64_t batch = 0, k = 0, n = 1;
  bool along_k = false;  // neighbours in memory are neighbours in k
  /// When not 0, k runs in blocks of this many, `k` elements apart; inside one the stride is 1.
  std::int64_t block = 0;
  bool is_patch = false;      // read through Gemm::patch
  std::int64_t elements = 0;  // of the whole operand; for patches
  /// The image is stored as numbers of Gemm::precision with the channels inside.
  bool is_channels_last = false;
};

struct GemmResult {
  BufferArgument buffer = output(0);
  std::int64_t batch = 0, row = 0;
  /// When not 0, n runs in blocks of this many, `outer` elements apart; inside one the stride is 1.
  std::int64_t block = 0, outer = 0;
  /// When line is not 0, a block's n instead walk over every so many slices, rows and columns of an image: n lies at
  /// first + (n / page)·step[0] + (n % page / line)·step[1] + (n % line)·step[2]. Needs a block.
  std::int64_t page = 0, line = 0, first = 0;
  PatchSizes step{0, 0, 0};
  /// Stored as numbers of Gemm::precision with the rows inside, all of them: m lies at m, n at as many times what is
  /// said above.
  bool is_channels_last = false;
  [[nodiscard]] bool is_stepped() const { return line != 0; }
};

/// C(z, m, n) = Σ_k A(z, m, k)·B(z, k, n), each value passed through the epilogue before it is written.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmLeft a;
  GemmRight b;
  GemmResult c;
  Patch patch;            // of the operand that says is_patch
  EpilogueText epilogue;  // empty for none
  Precision precision = Precision::fp32;
  bool is_scaled = false;     // by "scaled": factors are scaled fp16 numbers (planes.hpp)
  std::int64_t largest = 0;   // elements of the largest operand: decides the width of indices
  std::vector<Stage> before;  // what fills an operand in the workspace, and the bytes it takes
  std::size_t before_bytes = 0;
  bool partial = false;  // of prepare_partial_gemm: to be multiplied by the first stage

  /// Whether an operand is the patches of a volume.
  [[nodiscard]] bool is_volume() const { return (a.is_patch || b.is_patch) && patch.is_volume(); }
  /// Whether an operand or the result lies channels-last: only "tma" knows such products.
  [[nodiscard]] bool has_channels_last() const {
    return a.is_channels_last || b.is_channels_last || c.is_channels_last;
  }
};

/// The product of matrices without gaps in fp32: A(m, k) stored as its rows, or as its columns where `a_along_k` is
/// false; B(k, n) stored as its rows, or as its columns where `b_along_k` is true; C(m, n) as its rows.
[[nodiscard]] Gemm dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along_k = true,
                              bool b_along_k = false);

/// The kernel for a product: the implementation that the environment variable CONCORD_GEMM names where that accepts it;
/// the choice that a tuning table holds (tuning.hpp) where it serves; else the planned one. `label` starts the kernel's
/// name ("matmul").
[[nodiscard]] std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label);

/// A product as launches of a larger kernel. Where k is cut, what a part gives stays apart: the launch that reads the
/// product adds up `parts` matrices, each (batch, m, n).
struct PartialProduct {
  std::vector<StagedKernel::AnyStage> stages;
  BufferArgument result;  // in the workspace
  std::int64_t parts;
  std::size_t workspace;  // bytes in all
};
/// gemm.c and the begin of the workspace are this function's to choose; no epilogue.
[[nodiscard]] PartialProduct prepare_partial_gemm(Context& context, Gemm gemm, std::string_view label);

/// A tile of an implementation, by a name of its own ("128x64"), and into how many parts k is cut.
struct GemmTiling {
  std::string tile;
  std::int64_t parts = 1;
  bool operator==(const GemmTiling&) const = default;
};

/// One way to compute a product.
struct GemmImplementation {
  std::string_view name;
  bool (*suits)(Context&, Precision);
  bool (*accepts)(const Context&, const Gemm&);
  double (*seconds)(const Context&, const Gemm&);  // expected; infinite where it is not worth it, 0 where it always is
  std::unique_ptr<Kernel> (*prepare)(Context&, const Gemm&, std::string_view label);  // tiled as it plans
  std::array<std::string_view, 3> files;  // of cl_kernels that multiply; empty for none
  /// What a tuner should measure of a product that it accepts; empty where there is one way only.
  std::vector<GemmTiling> (*tilings)(const Context&, const Gemm&);
  /// Null where the implementation has no such tile, or k no such cut.
  std::unique_ptr<Kernel> (*prepare_tiling)(Context&, const Gemm&, const GemmTiling&, std::string_view label);
};
/// "panel" (CPUs), "scaled", "tma", "wgmma" and "mma" (NVIDIA's matrix units), "wave" (AMD's
/// and Intel's), "tiled" (GPUs), "clblast" (dense matrices), "reference" (anything).
[[nodiscard]] std::span<const GemmImplementation> gemm_implementations();
/// Whether it suits the device and accepts the product.
[[nodiscard]] bool gemm_serves(const GemmImplementation& one, Context& context, const Gemm& gemm);
/// Of those that serve, the one with the least expected time, the first of several; of channels-last operands "tma".
[[nodiscard]] const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm);
/// The time that it is expected to take.
[[nodiscard]] double planned_seconds(Context& context, const Gemm& gemm);
/// How many parts of k a tuner should try where so many are planned: one, half as many, as many, and twice as many.
[[nodiscard]] std::vector<std::int64_t> parts_around(std::int64_t planned);

/// The kernel that runs gemm.before, then `multiply`, which cuts k into `parts`, then adds the parts up.
[[nodiscard]] std::unique_ptr<Kernel> gemm_staged(Context& context, const Gemm& gemm, std::string name, Stage multiply,
                                                  std::int64_t parts);

// gemm_mma.cpp: fp32 by three products of tf32 numbers; other precisions by one product.
[[nodiscard]] bool mma_suits(Context& context, Precision precision);
[[nodiscard]] bool mma_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double mma_seconds(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_mma(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> mma_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_mma_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                         std::string_view label);

// gemm_tma.cpp: as gemm_wgmma.cpp, from operands packed into planes (planes.hpp), large ones in slices.
[[nodiscard]] bool tma_suits(Context& context, Precision precision);
[[nodiscard]] bool tma_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double tma_seconds(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_tma(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> tma_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_tma_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                         std::string_view label);

// gemm_tma.cpp too: fp32 and tf32 by three and one products of scaled fp16 numbers.
[[nodiscard]] bool scaled_suits(Context& context, Precision precision);
[[nodiscard]] bool scaled_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double scaled_seconds(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_scaled(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> scaled_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_scaled_tiling(Context& context, const Gemm& gemm,
                                                            const GemmTiling& tiling, std::string_view label);

// gemm_wgmma.cpp: fp32 by six products of bf16 numbers; other precisions by one product.
[[nodiscard]] bool wgmma_suits(Context& context, Precision precision);
[[nodiscard]] bool wgmma_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double wgmma_seconds(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_wgmma(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> wgmma_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_wgmma_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                           std::string_view label);

// gemm_wave.cpp: on the matrix units of AMD and Intel (wave_units.hpp), fp32 where they multiply such numbers.
[[nodiscard]] bool wave_suits(Context& context, Precision precision);
[[nodiscard]] bool wave_accepts(const Context& context, const Gemm& gemm);
[[nodiscard]] double wave_seconds(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_wave(Context& context, const Gemm& gemm, std::string_view label);
[[nodiscard]] std::vector<GemmTiling> wave_tilings(const Context& context, const Gemm& gemm);
[[nodiscard]] std::unique_ptr<Kernel> prepare_wave_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                                          std::string_view label);

// gemm_arguments.cpp: what the kernel files of gemm_operands.h get.
[[nodiscard]] std::vector<std::string> gemm_definitions(const Gemm& gemm);
/// GEMM_PARAMETERS and the epilogue's, with `extra` between them. When k is split into `parts` of `k_part`, C is the
/// workspace and no epilogue is applied: gemm_combine follows.
[[nodiscard]] std::vector<Argument> gemm_arguments(const Gemm& gemm, std::int64_t parts, std::int64_t k_part,
                                                   const std::vector<Argument>& extra = {});
/// GEMM_A_PARAMETERS and GEMM_C_PARAMETERS alone, and the definition that their width goes by.
[[nodiscard]] std::vector<Argument> gemm_left_arguments(const Gemm& gemm);
[[nodiscard]] std::vector<Argument> gemm_result_arguments(const Gemm& gemm);
[[nodiscard]] std::string gemm_index_definition(const Gemm& gemm);
/// The program of a kernel file with the product's definitions and, when wanted, its epilogue.
[[nodiscard]] PendingProgram gemm_program(Context& context, const Gemm& gemm, std::string_view file, bool with_epilogue,
                                          std::vector<std::string> definitions);
/// The stage that adds up the parts of a split product, and the workspace with them.
[[nodiscard]] Stage gemm_combine_stage(Context& context, const Gemm& gemm, std::int64_t parts);
[[nodiscard]] std::size_t gemm_workspace(const Gemm& gemm, std::int64_t parts);

// gemm_epilogue.cpp
/// Input `input` of the request as operand of an epilogue: its strides along z, m, the block of n and the place in it.
struct GemmExtra {
  std::size_t input;
  DType dtype;
  std::int64_t z, m, outer, inner;
};
/// The text and arguments that apply `expression` (input 0 is the product's value) in a GEMM kernel.
[[nodiscard]] EpilogueText gemm_epilogue(const Expression& expression, std::span<const GemmExtra> extra);
/// Strides with which `extra`, broadcast to `output`, is read along groups of output dimensions, each group walked as
/// one index: group i is the dimensions [ends[i-1], ends[i]). Nothing when a group has no single stride.
[[nodiscard]] std::optional<std::vector<std::int64_t>> grouped_strides(const Shape& extra, const Shape& output,
                                                                       std::span<const std::size_t> ends);

// gemm_clblast.cpp
[[nodiscard]] bool clblast_accepts(const Context&, const Gemm&);
[[nodiscard]] std::unique_ptr<Kernel> prepare_clblast(Context&, const Gemm&, std::string_view label);

/// A row-major product C = alpha-free op(A)·op(B) + beta·C through CLBlast, with places in elements added to the
/// operands'.
struct ClblastProduct {
  bool transpose_a = false, transpose_b = false;
  std::size_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  float beta = 0;
  BufferArgument a, b, c;           // extra_bytes are honoured
  std::size_t workspace_begin = 0;  // where in the workspace CLBlast's temporary memory may lie
};
/// Bytes of workspace, from workspace_begin, that the product wants.
[[nodiscard]] std::size_t clblast_workspace(Context& context, const ClblastProduct& product);
[[nodiscard]] LibraryStage clblast_stage(Context& context, const ClblastProduct& product);

}  // namespace concord::opencl
