// Representations, forms, sizes and slices of matrix multiplications for the copy engine.
#include "concord/opencl/gemm/hopper/split_operands.hpp"

#include <fmt/format.h>

#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

PlaneForm::Kind kind_of(const Gemm& gemm) {
  if (!gemm.b.is_patch) return PlaneForm::Kind::matrix;
  return gemm.b.along_k ? PlaneForm::Kind::image_turned : PlaneForm::Kind::image;
}

constexpr std::int64_t kMostBytes = std::int64_t{5} << 28, kDeepestTile = 64;

/// The problem in the representation that needs the most memory.
Gemm at_widest(Gemm gemm) {
  gemm.is_scaled = can_be_scaled(gemm);
  return gemm;
}

/// The plane sizes with tiles of `lines` lines.
PlaneSizes sizes_with(const Gemm& gemm, std::int64_t lines) {
  return plane_sizes(gemm, plane_form(gemm, kDeepestTile), {lines, lines, kDeepestTile * plane_numbers(gemm).bytes()});
}

/// Bytes of the planes of both operands.
std::int64_t plane_bytes(const Gemm& gemm) {
  constexpr std::int64_t kLines = 128;
  const PlaneSizes sizes = sizes_with(gemm, kLines);
  return (sizes.right + sizes.left) * plane_numbers(gemm).bytes_of_all();
}

}  // namespace

MapPlaces ImageWalk::map_places(std::int64_t channels, std::int64_t places) const {
  const std::array<std::int64_t, 2> kernel{taps_.line, taps_.block / taps_.line};
  MapPlaces result{channels, places, {places_.line, places_.block / places_.line}, {}, {}};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t move = taps_.move[2 - axis];
    result.low[axis] = patch_.shift[2 - axis] + std::min<std::int64_t>(move, 0) * (kernel[axis] - 1);
    result.step[axis] = std::max<std::int64_t>(places_.move[2 - axis], 1);
  }
  return result;
}

bool ImageWalk::is_plain() const {
  constexpr std::int64_t kFarthestTap = 255;
  const std::array<std::int64_t, 2> far{(taps_.line - 1) * taps_.move[2],
                                        (taps_.block / taps_.line - 1) * taps_.move[1]};
  const bool forward = far[0] >= 0 && far[1] >= 0, backward = far[0] <= 0 && far[1] <= 0;
  return !patch_.is_volume() && patch_.step == PatchSizes{1, 1, 1} && taps_.page == taps_.block &&
         places_.page == places_.block && tap_index_ % taps_.block == 0 && place_index_ % places_.block == 0 &&
         places_.move[1] >= 0 && places_.move[2] >= 0 && (forward || backward) &&
         std::max(std::abs(far[0]), std::abs(far[1])) <= kFarthestTap;
}

ImagePlanes::ImagePlanes(const Gemm& gemm, const ImageWalk& walk, std::int64_t planes) : numbers_(plane_numbers(gemm)) {
  const std::int64_t pixel = round_up(walk.channels(), numbers_.block()) * numbers_.bytes();
  sizes_ = {walk.channels(), walk.columns(), walk.rows(), planes * gemm.batch * walk.images()};
  strides_ = {pixel, pixel * walk.columns(), pixel * walk.columns() * walk.rows()};
}

namespace {

PlaneSizes sizes_of_both(const Gemm& gemm, const PlaneForm& form, const PlaneBox& box) {
  const std::int64_t tile_k = box.row_bytes / plane_numbers(gemm).bytes();
  if (form.kind == PlaneForm::Kind::matrix) {
    const std::int64_t depth = form.tiles_k * tile_k;
    return {gemm.batch * round_up(gemm.n, box.rows) * depth, gemm.batch * round_up(gemm.m, box.columns) * depth};
  }
  const std::int64_t block = plane_numbers(gemm).block();
  const ImageWalk walk(gemm);
  const std::int64_t image = gemm.batch * form.images * walk.rows() * walk.columns() * round_up(form.channels, block);
  if (form.kind == PlaneForm::Kind::image_turned) return {image, gemm.batch * gemm.k * round_up(gemm.m, block)};
  return {image, gemm.batch * gemm.m * form.taps * form.channel_tiles * tile_k};
}

}  // namespace

PlaneSizes plane_sizes(const Gemm& gemm, const PlaneForm& form, const PlaneBox& box) {
  const PlaneSizes both = sizes_of_both(gemm, form, box);
  return {gemm.b.is_channels_last ? 0 : both.right, gemm.a.has_16_bits() ? 0 : both.left};
}

PlaneNumbers plane_numbers(const Gemm& gemm) {
  if (gemm.is_scaled) {
    const bool is_fp32 = gemm.precision == Precision::fp32;
    return {MapNumber::f16,
            3,
            {"PRECISION=SCALED", fmt::format("FP16_PLANES={}", is_fp32 ? 2 : 1)},
            is_fp32 ? 2 : 1,
            is_fp32 ? 3 : 1};
  }
  const std::vector<std::string> definitions{std::string(matrix_precision(gemm.precision))};
  switch (gemm.precision) {
    case Precision::tf32: return {MapNumber::f32, 1, definitions, 1, 1};
    case Precision::bf16: return {MapNumber::bf16, 1, definitions, 1, 1};
    case Precision::fp16: return {MapNumber::f16, 1, definitions, 1, 1};
    case Precision::fp32: break;
  }
  return {MapNumber::bf16, 3, definitions, 3, 6};
}

std::string_view PlaneForm::definition() const {
  constexpr std::array<std::string_view, 3> kNames{"RIGHT=MATRIX", "RIGHT=IMAGE", "RIGHT=IMAGE_TURNED"};
  return kNames.at(static_cast<std::size_t>(kind));
}

GemmResult PlaneForm::channels_first(const GemmResult& c) const {
  GemmResult result = c;
  result.block = taps * channels;
  result.outer = 0;
  result.page = result.line = channels;
  result.first = 0;
  result.step = {1, 0, taps};
  return result;
}

PlaneForm plane_form(const Gemm& gemm, std::int64_t tile_k) {
  const PlaneForm::Kind kind = kind_of(gemm);
  if (kind == PlaneForm::Kind::matrix) return {kind, gemm.n, divide_up(gemm.k, tile_k), 1, 1, 1, gemm.k};
  const ImageWalk walk(gemm);
  if (kind == PlaneForm::Kind::image) {
    const bool are_filters = gemm.a.filter_channels != 0;
    const std::int64_t tiles = are_filters ? gemm.a.filter_channels / tile_k : divide_up(walk.channels(), tile_k);
    return {kind, gemm.n, walk.taps() * tiles, tiles, walk.images(), walk.taps(), walk.channels()};
  }
  const std::int64_t blocks = divide_up(walk.channels(), kChannelBlock);
  return {kind,
          walk.taps() * blocks * kChannelBlock,
          divide_up(gemm.k, tile_k),
          blocks,
          walk.images(),
          walk.taps(),
          walk.channels()};
}

bool supports_packing(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  const PlaneForm::Kind kind = kind_of(gemm);
  const Gemm slice = plane_slices(gemm).front();
  // The second index of a launch counts rows that are packed in their own order.
  std::int64_t packed_rows = 1;
  if (kind == PlaneForm::Kind::matrix) {
    if (gemm.b.block != 0 || a.block != 0 || (a.k != 1 && a.row != 1)) return false;
    packed_rows = std::max(a.k == 1 ? slice.m : 1, gemm.b.along_k ? gemm.n : 1);
  } else {
    const ImageWalk walk(gemm);
    if (!walk.is_plain()) return false;
    const PlaneNumbers numbers = plane_numbers(gemm);
    const ImagePlanes image(gemm, walk, numbers.planes);
    if (!map_holds(image.tensor(), walk.map_places(kChannelBlock, kDeepestTile))) return false;
    packed_rows = gemm.m;
    if (kind == PlaneForm::Kind::image_turned) {
      packed_rows = 1;
      // The matrix cores read 32-bit values only with k inside. Positions past the last image of a group belong to the
      // next group: zeros multiply them, and an infinity would give NaN. Only split operands handle that.
      const bool runs_on = gemm.batch > 1 && gemm.k % kDeepestTile != 0 && numbers.planes == 1;
      if (a.k != 1 || walk.moves_backward() || numbers.number == MapNumber::f32 || runs_on) return false;
    }
  }
  return packed_rows <= kMostGroups && gemm.batch <= kMostGroups && plane_bytes(at_widest(slice)) <= kMostBytes;
}

std::vector<Gemm> plane_slices(const Gemm& gemm) {
  constexpr std::int64_t kUnit = 128, kMostSlices = 8;
  const bool can_be_cut = kind_of(gemm) == PlaneForm::Kind::matrix && gemm.batch == 1 && gemm.epilogue.text.empty() &&
                          !gemm.has_channels_last();
  const Gemm widest = at_widest(gemm);
  const PlaneNumbers numbers = plane_numbers(widest);
  const std::int64_t bytes = plane_bytes(widest);
  if (bytes <= kMostBytes || !can_be_cut) return {gemm};
  const std::int64_t a_row = round_up(gemm.k, numbers.block()) * numbers.bytes_of_all();
  const std::int64_t most_rows = (kMostBytes - (bytes - gemm.m * a_row)) / a_row / kUnit * kUnit;
  if (most_rows < kUnit || gemm.m > kMostSlices * most_rows) return {gemm};
  const std::int64_t rows = round_up(divide_up(gemm.m, divide_up(gemm.m, most_rows)), kUnit);
  std::vector<Gemm> slices;
  for (std::int64_t begin = 0; begin < gemm.m; begin += rows) {
    Gemm slice = gemm;
    slice.m = std::min(rows, gemm.m - begin);
    slice.a.buffer.extra_bytes += size(begin * gemm.a.row) * sizeof(float);
    slice.c.buffer.extra_bytes += size(begin * gemm.c.row) * sizeof(float);
    slices.push_back(slice);
  }
  return slices;
}

double pack_seconds(const Gemm& gemm) {
  const PlaneNumbers numbers = plane_numbers(gemm);
  constexpr double kAligned = 3e12,
                   kUnaligned = 1.5e12;  // bytes a second; rows of k that begin anywhere are read slower
  const bool is_matrix = kind_of(gemm) == PlaneForm::Kind::matrix;
  const bool slow_left = is_matrix && gemm.a.k == 1 && !in_fours({gemm.a.row, gemm.a.batch});
  const bool slow_right = is_matrix && gemm.b.along_k && !in_fours({gemm.b.n, gemm.b.batch});
  const PlaneSizes sizes = sizes_with(gemm, 1);
  // The scales need one more read of each operand.
  const std::int64_t reads = gemm.is_scaled ? 2 : 1, launches = gemm.is_scaled ? 5 : 2;
  const auto bytes = static_cast<double>(4 * reads + numbers.multiplied_planes * numbers.bytes());
  return static_cast<double>(launches) * kLaunchSeconds +
         bytes * (static_cast<double>(sizes.left) / (slow_left ? kUnaligned : kAligned) +
                  static_cast<double>(sizes.right) / (slow_right ? kUnaligned : kAligned));
}

}  // namespace concord::opencl
