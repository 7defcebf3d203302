// The stages that pack operands into planes in the workspace.
#include "concord/opencl/gemm/hopper/pack.hpp"

#include <fmt/format.h>

#include <optional>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/hopper/scales.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

/// The map of a tensor. A scaled problem has two: first the map of the scaled planes, then that of the planes that it
/// falls back to. The latter planes are not written without a fallback, and copies of the former that run past the last
/// image must get zeros.
using PlaneMaps = std::vector<TensorMap>;

constexpr std::int64_t kBlockBytes = 16;

/// The part of a matrix that a copy transfers: lines, and 16-byte blocks of each.
struct PlaneTile {
  std::int64_t lines, blocks;
};

/// The destination of a packed operand and of its map.
struct PlanePlace {
  std::int64_t plane_blocks;  // from plane to plane
  BufferArgument planes;
  KeptArgument map;
  std::vector<Argument> scales = {};   // of a scaled product
  std::optional<PlaneTile> tile = {};  // of a matrix, which lies tile after tile
  [[nodiscard]] std::int64_t blocks_of_line(std::int64_t blocks) const {
    return tile ? round_up(blocks, tile->blocks) : blocks;
  }
  [[nodiscard]] std::vector<std::string> definitions() const {
    if (!tile) return {};
    return {fmt::format("TILE_LINES={}", tile->lines), fmt::format("TILE_BLOCKS={}", tile->blocks)};
  }
};

/// An operand that the copy engine can read where it is, and the destination of its map.
struct Described {
  PlaneMaps maps;
  BufferArgument operand;
  KeptArgument to;
};

/// Builds the stages of one matrix multiplication.
class Packer {
 public:
  Packer(Context& context, const Gemm& gemm) : context_(context), gemm_(gemm), numbers_(plane_numbers(gemm)) {}

  /// The next stage also writes the map of this operand.
  void describe(const Described& operand) { described_ = operand; }

  [[nodiscard]] const PlaneNumbers& numbers() const { return numbers_; }
  [[nodiscard]] std::int64_t block() const { return numbers_.block(); }
  /// The maps that `make` builds, one for each number of planes that the kernel may read.
  template <class Make>
  [[nodiscard]] PlaneMaps each_map(const Make& make) const {
    if (!gemm_.is_scaled) return {make(numbers_.planes)};
    return {make(numbers_.multiplied_planes), make(numbers_.planes)};
  }

  /// `rows` rows of k, adjacent in memory.
  [[nodiscard]] Stage rows(const BufferArgument& source, std::int64_t batch, std::int64_t rows, std::int64_t row_stride,
                           const PlaneMaps& maps, const PlanePlace& to) const {
    constexpr std::size_t kWidth = 16, kHeight = 4;
    const std::int64_t blocks = to.blocks_of_line(divide_up(gemm_.k, block()));
    std::vector<std::string> definitions = to.definitions();
    if (in_fours({row_stride, batch})) definitions.emplace_back("VECTOR");
    std::vector<Argument> arguments{as_uint(rows),   as_uint(gemm_.k),     as_uint(blocks),          source,
                                    as_ulong(batch), as_ulong(row_stride), as_ulong(to.plane_blocks)};
    add_target(arguments, maps, to);
    return {program(std::move(definitions)),
            "planes_pack_rows",
            {PackedArguments{std::move(arguments)}},
            {divide_up(size(blocks), kWidth) * kWidth, divide_up(size(rows), kHeight) * kHeight, size(gemm_.batch)},
            {kWidth, kHeight, 1}};
  }

  /// Runs of adjacent elements, `run` long and run_stride apart, j_stride from one j to the next: i becomes the row, of
  /// `blocks` blocks, or as many as j needs.
  struct Turned {
    BufferArgument source;
    std::int64_t batch, i, j, j_stride, run, run_stride, blocks = 0;
  };
  [[nodiscard]] Stage turned(const Turned& from, const PlaneMaps& maps, const PlanePlace& to) const {
    constexpr std::int64_t kSide = 64, kPackThreads = 256;
    const FastDivisor run = fast_divisor(from.run);
    std::vector<Argument> arguments{
        as_uint(from.i),
        as_uint(from.j),
        as_uint(from.blocks != 0 ? from.blocks : to.blocks_of_line(divide_up(from.j, block()))),
        from.source,
        as_ulong(from.batch),
        as_ulong(from.j_stride),
        run.divisor,
        run.multiplier,
        run.shift,
        as_ulong(from.run_stride),
        as_ulong(to.plane_blocks)};
    add_target(arguments, maps, to);
    return {program(to.definitions()),
            "planes_pack_turned",
            {PackedArguments{std::move(arguments)}},
            {size(divide_up(from.i, kSide) * kPackThreads), size(divide_up(from.j, kSide)), size(gemm_.batch)},
            {size(kPackThreads), 1, 1}};
  }

  /// Packs nothing: only writes the map.
  [[nodiscard]] Stage described(const Described& operand) const {
    std::vector<Argument> arguments;
    add_target(arguments, operand.maps, {0, blocks_of(operand.operand), operand.to, {}});
    return {.program = program({}),
            .function = "planes_describe",
            .arguments = {PackedArguments{std::move(arguments)}},
            .global = {1, 1, 1},
            .local = {1, 1, 1},
            .once = true};
  }

  [[nodiscard]] Stage filters(const PlaneForm& form, std::int64_t tap_blocks, bool backward, const PlaneMaps& maps,
                              const PlanePlace& to) const {
    std::vector<std::string> definitions;
    if (gemm_.a.k == 1) definitions.emplace_back("A_ALONG_K");
    if (gemm_.a.block != 0) definitions.emplace_back("A_BLOCKED");
    std::vector<Argument> arguments{as_uint(gemm_.m), as_uint(form.channels), as_uint(form.taps),
                                    std::uint32_t{backward ? 1U : 0U}, as_uint(tap_blocks)};
    const std::vector<Argument> left = gemm_left_arguments(gemm_);
    arguments.insert(arguments.end(), left.begin(), left.end());
    arguments.emplace_back(as_ulong(to.plane_blocks));
    add_target(arguments, maps, to);
    constexpr std::size_t kWidth = 64;
    return {program(std::move(definitions)),
            "planes_pack_filters",
            {PackedArguments{std::move(arguments)}},
            {(size(form.taps * tap_blocks) + kWidth - 1) / kWidth * kWidth, size(gemm_.m), size(gemm_.batch)},
            {kWidth, 1, 1}};
  }

 private:
  [[nodiscard]] PendingProgram program(std::vector<std::string> definitions) const {
    definitions.insert(definitions.end(), numbers_.definitions.begin(), numbers_.definitions.end());
    definitions.emplace_back("INDEX=int");
    if (described_) definitions.emplace_back("DESCRIBE");
    return context_.program("gemm/hopper/pack.cl", definitions);
  }
  void add_target(std::vector<Argument>& arguments, const PlaneMaps& maps, const PlanePlace& to) const {
    arguments.emplace_back(constant_table<TensorMap>(context_, maps));
    arguments.emplace_back(to.planes);
    arguments.emplace_back(to.map);
    arguments.insert(arguments.end(), to.scales.begin(), to.scales.end());
    if (!described_) return;
    arguments.emplace_back(constant_table<TensorMap>(context_, described_->maps));
    arguments.emplace_back(blocks_of(described_->operand));
    arguments.emplace_back(described_->to);
  }

  Context& context_;
  const Gemm& gemm_;
  PlaneNumbers numbers_;
  std::optional<Described> described_;
};

/// The map of a matrix in tiles: (plane and batch, line of a tile, k in the tile). If whole lines followed each other,
/// the lines of a tile would, for long k, lie in one memory page each, which halves the speed.
PlaneMaps tiled_maps(const Packer& packer, const Gemm& gemm, const PlaneForm& form, std::int64_t lines,
                     std::int64_t tile_lines, std::int64_t tile_k) {
  const std::int64_t all_lines = round_up(lines, tile_lines) * form.tiles_k;
  const std::int64_t line_bytes = tile_k * packer.numbers().bytes();
  return packer.each_map([&](std::int64_t planes) {
    const std::array<std::int64_t, 3> sizes{tile_k, all_lines, planes * gemm.batch}, box{tile_k, tile_lines, 1};
    const std::array<std::int64_t, 2> strides{line_bytes, line_bytes * all_lines};
    return box_map({packer.numbers().number, sizes, strides}, box);
  });
}

/// The map of (plane and batch, line, inner) with `inner` padded to whole blocks in memory.
PlaneMaps matrix_maps(const Packer& packer, const Gemm& gemm, std::int64_t inner, std::int64_t lines,
                      std::int64_t box_inner, std::int64_t box_lines) {
  const std::int64_t line = round_up(inner, packer.block()) * packer.numbers().bytes();
  return packer.each_map([&](std::int64_t planes) {
    const std::array<std::int64_t, 3> sizes{inner, lines, planes * gemm.batch}, box{box_inner, box_lines, 1};
    const std::array<std::int64_t, 2> strides{line, line * lines};
    return box_map({packer.numbers().number, sizes, strides}, box);
  });
}

PlaneMaps right_maps(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box) {
  const std::int64_t tile_k = box.row_bytes / packer.numbers().bytes();
  if (form.kind == PlaneForm::Kind::matrix) return tiled_maps(packer, gemm, form, gemm.n, box.rows, tile_k);
  const ImageWalk walk(gemm);
  const bool turned = form.kind == PlaneForm::Kind::image_turned;
  const MapPlaces places = turned ? walk.map_places(kChannelBlock, tile_k) : walk.map_places(tile_k, box.rows);
  return packer.each_map(
      [&](std::int64_t planes) { return places_map(ImagePlanes(gemm, walk, planes).tensor(), places); });
}

Stage pack_right(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box,
                 const PlanePlace& to) {
  const PlaneMaps maps = right_maps(packer, gemm, form, box);
  if (form.kind == PlaneForm::Kind::matrix) {
    if (gemm.b.along_k) return packer.rows(gemm.b.buffer, gemm.b.batch, gemm.n, gemm.b.n, maps, to);
    return packer.turned({gemm.b.buffer, gemm.b.batch, gemm.n, gemm.k, gemm.b.k, gemm.n, 0}, maps, to);
  }
  const ImageWalk walk(gemm);
  const std::int64_t pixels = walk.rows() * walk.columns();
  return packer.turned({gemm.b.buffer, gemm.b.batch, walk.images() * pixels, walk.channels(), walk.channel_stride(),
                        pixels, walk.image_stride()},
                       maps, to);
}

/// Number of 16-byte blocks per tap of a filter.
std::int64_t tap_blocks(const Packer& packer, const PlaneForm& form, std::int64_t tile_k) {
  return form.channel_tiles * tile_k / packer.block();
}

PlaneMaps left_maps(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box) {
  const std::int64_t tile_k = box.row_bytes / packer.numbers().bytes();
  switch (form.kind) {
    case PlaneForm::Kind::image_turned: return matrix_maps(packer, gemm, gemm.m, gemm.k, kChannelBlock, tile_k);
    case PlaneForm::Kind::image:
      return matrix_maps(packer, gemm, form.taps * tap_blocks(packer, form, tile_k) * packer.block(), gemm.m, tile_k,
                         box.columns);
    default: return tiled_maps(packer, gemm, form, gemm.m, box.columns, tile_k);
  }
}

Stage pack_left(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box,
                const PlanePlace& to) {
  const GemmLeft& a = gemm.a;
  const PlaneMaps maps = left_maps(packer, gemm, form, box);
  if (form.kind == PlaneForm::Kind::image_turned) {
    const bool blocked = a.block != 0;
    return packer.turned({a.buffer, a.batch, gemm.k, gemm.m, a.row, blocked ? a.block : gemm.k, blocked ? a.outer : 0},
                         maps, to);
  }
  if (form.kind == PlaneForm::Kind::image) {
    const std::int64_t blocks = tap_blocks(packer, form, box.row_bytes / packer.numbers().bytes());
    if (form.taps == 1 && a.row == 1 && a.block == 0) {
      return packer.turned({a.buffer, a.batch, gemm.m, gemm.k, a.k, gemm.m, 0, blocks}, maps, to);
    }
    return packer.filters(form, blocks, ImageWalk(gemm).moves_backward(), maps, to);
  }
  if (a.k == 1) return packer.rows(a.buffer, a.batch, gemm.m, a.row, maps, to);
  return packer.turned({a.buffer, a.batch, gemm.m, gemm.k, a.k, gemm.m, 0}, maps, to);
}

std::vector<Argument> joined(std::vector<Argument> first, const std::vector<Argument>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<Argument> pack_planes(Context& context, Gemm& gemm, const PlaneForm& form, const PlaneBox& box,
                                  const KeptArgument& maps) {
  constexpr std::int64_t kAlignment = 256;
  Packer packer(context, gemm);
  const PlaneNumbers& numbers = packer.numbers();
  const PlaneSizes sizes = plane_sizes(gemm, form, box);
  std::int64_t left = round_up(static_cast<std::int64_t>(gemm.before_bytes), kAlignment);
  std::vector<Argument> scale_arguments, left_scales, right_scales;
  if (gemm.is_scaled) {
    const PlaneScales scales = measure_operands(context, gemm, form, size(left));
    gemm.before.insert(gemm.before.end(), scales.stages.begin(), scales.stages.end());
    left_scales = joined({scales.mixture}, scales.left.arguments());
    right_scales = joined({scales.mixture}, scales.right.arguments());
    scale_arguments = joined(left_scales, scales.right.arguments());
    left = static_cast<std::int64_t>(scales.end);
  }
  const std::int64_t right = left + round_up(sizes.left * numbers.bytes_of_all(), kAlignment);
  const std::int64_t end = right + round_up(sizes.right * numbers.bytes_of_all(), kAlignment);

  const auto tile = [&](std::int64_t lines) {
    const bool is_matrix = form.kind == PlaneForm::Kind::matrix;
    return is_matrix ? std::optional(PlaneTile{lines, box.row_bytes / kBlockBytes}) : std::nullopt;
  };
  const PlanePlace left_place{sizes.left / packer.block(), workspace(size(left), 16), maps, left_scales,
                              tile(box.columns)};
  const PlanePlace right_place{sizes.right / packer.block(), workspace(size(right), 16),
                               further(maps, sizeof(TensorMap)), right_scales, tile(box.rows)};
  // An operand that is channels-last or filters needs no packing. The stage of the other operand writes its map.
  if (gemm.b.is_channels_last) packer.describe({right_maps(packer, gemm, form, box), gemm.b.buffer, right_place.map});
  if (gemm.a.has_16_bits()) {
    const Described operand{left_maps(packer, gemm, form, box), gemm.a.buffer, left_place.map};
    if (gemm.b.is_channels_last) {
      gemm.before.push_back(packer.described(operand));
    } else {
      packer.describe(operand);
    }
  } else {
    gemm.before.push_back(pack_left(packer, gemm, form, box, left_place));
  }
  if (!gemm.b.is_channels_last) gemm.before.push_back(pack_right(packer, gemm, form, box, right_place));
  gemm.before_bytes = size(end);
  return scale_arguments;
}

}  // namespace concord::opencl
