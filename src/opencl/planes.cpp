// The stages that pack operands into planes, and the sizes of what they write.
#include "concord/opencl/planes.hpp"

#include <algorithm>
#include <array>

#include "concord/opencl/matrix_units.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kChannelBlock = 64;  // of an operand whose channels lie inside and whose places are k

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

PlaneForm::Kind kind_of(const Gemm& gemm) {
  if (!gemm.b.is_patch) return PlaneForm::Kind::matrix;
  return gemm.b.along_k ? PlaneForm::Kind::image_turned : PlaneForm::Kind::image;
}

/// The image of a product's patches, and where taps and places lie on it.
class ImageWalk {
 public:
  explicit ImageWalk(const Gemm& gemm)
      : patch_(gemm.patch),
        taps_(gemm.b.along_k ? gemm.patch.n : gemm.patch.k),
        places_(gemm.b.along_k ? gemm.patch.k : gemm.patch.n),
        tap_index_(gemm.b.along_k ? gemm.n : gemm.k),
        place_index_(gemm.b.along_k ? gemm.k : gemm.n) {}

  [[nodiscard]] std::int64_t taps() const { return taps_.block; }
  [[nodiscard]] std::int64_t channels() const { return tap_index_ / taps_.block; }
  [[nodiscard]] std::int64_t images() const { return place_index_ / places_.block; }
  [[nodiscard]] std::int64_t rows() const { return patch_.size[1]; }
  [[nodiscard]] std::int64_t columns() const { return patch_.size[2]; }
  [[nodiscard]] std::int64_t channel_stride() const { return taps_.plane; }
  [[nodiscard]] std::int64_t image_stride() const { return places_.plane; }
  [[nodiscard]] bool moves_backward() const { return taps_.move[1] < 0 || taps_.move[2] < 0; }

  [[nodiscard]] MapPlaces map_places(std::int64_t channels, std::int64_t places) const {
    const std::array<std::int64_t, 2> kernel{taps_.line, taps_.block / taps_.line};
    MapPlaces result{channels, places, {places_.line, places_.block / places_.line}, {}, {}};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t move = taps_.move[2 - axis];
      result.low[axis] = patch_.shift[2 - axis] + std::min<std::int64_t>(move, 0) * (kernel[axis] - 1);
      result.step[axis] = std::max<std::int64_t>(places_.move[2 - axis], 1);
    }
    return result;
  }

  /// Whether the kernel's walk is that of the patches: an image without depth, whole pixels, taps in one direction.
  [[nodiscard]] bool is_plain() const {
    constexpr std::int64_t kFarthestTap = 255;
    const std::array<std::int64_t, 2> far{(taps_.line - 1) * taps_.move[2],
                                          (taps_.block / taps_.line - 1) * taps_.move[1]};
    const bool forward = far[0] >= 0 && far[1] >= 0, backward = far[0] <= 0 && far[1] <= 0;
    return !patch_.is_volume() && patch_.step == PatchSizes{1, 1, 1} && taps_.page == taps_.block &&
           places_.page == places_.block && tap_index_ % taps_.block == 0 && place_index_ % places_.block == 0 &&
           places_.move[1] >= 0 && places_.move[2] >= 0 && (forward || backward) &&
           std::max(std::abs(far[0]), std::abs(far[1])) <= kFarthestTap;
  }

 private:
  const Patch& patch_;
  const PatchPart &taps_, &places_;
  std::int64_t tap_index_, place_index_;
};

/// Numbers of a plane of each operand, padding included.
struct PlaneSizes {
  std::int64_t right, left;
};
PlaneSizes plane_sizes(const Gemm& gemm, const PlaneForm& form, std::int64_t tile_k) {
  const std::int64_t block = plane_numbers(gemm).block();
  if (form.kind == PlaneForm::Kind::matrix) {
    const std::int64_t depth = round_up(gemm.k, block);
    return {gemm.batch * gemm.n * depth, gemm.batch * gemm.m * depth};
  }
  const ImageWalk walk(gemm);
  const std::int64_t image = gemm.batch * form.images * walk.rows() * walk.columns() * round_up(form.channels, block);
  if (form.kind == PlaneForm::Kind::image_turned) return {image, gemm.batch * gemm.k * round_up(gemm.m, block)};
  return {image, gemm.batch * gemm.m * form.taps * form.channel_tiles * tile_k};
}

constexpr std::int64_t kMostBytes = std::int64_t{5} << 28, kDeepestTile = 64;

/// Of both operands.
std::int64_t plane_bytes(const Gemm& gemm) {
  const PlaneSizes sizes = plane_sizes(gemm, plane_form(gemm, kDeepestTile), kDeepestTile);
  return (sizes.right + sizes.left) * plane_numbers(gemm).bytes_of_all();
}

boost::compute::buffer table_of(Context& context, const TensorMap& map) {
  return {context.context(), sizeof(TensorMap), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
          const_cast<std::uint32_t*>(map.data())};
}

std::uint32_t count(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::uint64_t wide(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// Where a packed operand and its map go.
struct PlanePlace {
  std::int64_t plane_blocks;  // 16-byte blocks from plane to plane
  BufferArgument planes, map;
};

/// Makes the stages of one product.
class Packer {
 public:
  Packer(Context& context, const Gemm& gemm) : context_(context), gemm_(gemm), numbers_(plane_numbers(gemm)) {}

  [[nodiscard]] const PlaneNumbers& numbers() const { return numbers_; }
  [[nodiscard]] std::int64_t block() const { return numbers_.block(); }
  [[nodiscard]] std::int64_t groups() const { return numbers_.planes * gemm_.batch; }

  /// `rows` rows of k, adjacent in memory.
  [[nodiscard]] Stage rows(const BufferArgument& source, std::int64_t batch, std::int64_t rows, std::int64_t row_stride,
                           const TensorMap& map, const PlanePlace& to) const {
    constexpr std::size_t kWidth = 64;
    const std::int64_t blocks = divide_up(gemm_.k, block());
    std::vector<Argument> arguments{count(rows), count(gemm_.k),   count(blocks),        source,
                                    wide(batch), wide(row_stride), wide(to.plane_blocks)};
    add_target(arguments, map, to);
    return {program(in_fours({row_stride, batch}) ? std::vector<std::string>{"VECTOR"} : std::vector<std::string>{}),
            "planes_pack_rows",
            std::move(arguments),
            {(size(blocks) + kWidth - 1) / kWidth * kWidth, size(rows), size(gemm_.batch)},
            {kWidth, 1, 1}};
  }

  /// Runs of adjacent elements, `run` long and run_stride apart, j_stride from one j to the next: i becomes the row.
  struct Turned {
    BufferArgument source;
    std::int64_t batch, i, j, j_stride, run, run_stride;
  };
  [[nodiscard]] Stage turned(const Turned& from, const TensorMap& map, const PlanePlace& to) const {
    constexpr std::int64_t kSide = 64, kThreads = 256;
    const FastDivisor run = fast_divisor(from.run);
    std::vector<Argument> arguments{count(from.i),         count(from.j),        count(divide_up(from.j, block())),
                                    from.source,           wide(from.batch),     wide(from.j_stride),
                                    run.divisor,           run.multiplier,       run.shift,
                                    wide(from.run_stride), wide(to.plane_blocks)};
    add_target(arguments, map, to);
    return {program({}),
            "planes_pack_turned",
            std::move(arguments),
            {size(divide_up(from.i, kSide) * kThreads), size(divide_up(from.j, kSide)), size(gemm_.batch)},
            {size(kThreads), 1, 1}};
  }

  [[nodiscard]] Stage filters(const PlaneForm& form, std::int64_t tap_blocks, bool backward, const TensorMap& map,
                              const PlanePlace& to) const {
    std::vector<std::string> definitions;
    if (gemm_.a.k == 1) definitions.emplace_back("A_ALONG_K");
    if (gemm_.a.block != 0) definitions.emplace_back("A_BLOCKED");
    std::vector<Argument> arguments{count(gemm_.m), count(form.channels), count(form.taps),
                                    std::uint32_t{backward ? 1U : 0U}, count(tap_blocks)};
    const std::vector<Argument> left = gemm_left_arguments(gemm_);
    arguments.insert(arguments.end(), left.begin(), left.end());
    arguments.emplace_back(wide(to.plane_blocks));
    add_target(arguments, map, to);
    constexpr std::size_t kWidth = 64;
    return {program(std::move(definitions)),
            "planes_pack_filters",
            std::move(arguments),
            {(size(form.taps * tap_blocks) + kWidth - 1) / kWidth * kWidth, size(gemm_.m), size(gemm_.batch)},
            {kWidth, 1, 1}};
  }

 private:
  [[nodiscard]] PendingProgram program(std::vector<std::string> definitions) const {
    definitions.emplace_back(numbers_.definition);
    definitions.emplace_back("INDEX=int");
    return context_.program("nvidia/planes_pack.cl", definitions);
  }
  void add_target(std::vector<Argument>& arguments, const TensorMap& map, const PlanePlace& to) const {
    arguments.emplace_back(table_of(context_, map));
    arguments.emplace_back(to.planes);
    arguments.emplace_back(to.map);
  }

  Context& context_;
  const Gemm& gemm_;
  PlaneNumbers numbers_;
};

/// The map of (groups, lines, inner) with `inner` padded to whole blocks in memory.
TensorMap matrix_map(const Packer& packer, std::int64_t inner, std::int64_t lines, std::int64_t box_inner,
                     std::int64_t box_lines) {
  const std::int64_t line = round_up(inner, packer.block()) * packer.numbers().bytes();
  const std::array<std::int64_t, 3> sizes{inner, lines, packer.groups()}, box{box_inner, box_lines, 1};
  const std::array<std::int64_t, 2> strides{line, line * lines};
  return box_map({packer.numbers().number, sizes, strides}, box);
}

/// Sizes and strides of an image's planes.
class ImagePlanes {
 public:
  ImagePlanes(const Gemm& gemm, const ImageWalk& walk) : numbers_(plane_numbers(gemm)) {
    const std::int64_t pixel = round_up(walk.channels(), numbers_.block()) * numbers_.bytes();
    sizes_ = {walk.channels(), walk.columns(), walk.rows(), numbers_.planes * gemm.batch * walk.images()};
    strides_ = {pixel, pixel * walk.columns(), pixel * walk.columns() * walk.rows()};
  }
  [[nodiscard]] MapTensor tensor() const { return {numbers_.number, sizes_, strides_}; }

 private:
  PlaneNumbers numbers_;
  std::array<std::int64_t, 4> sizes_{};
  std::array<std::int64_t, 3> strides_{};
};

Stage pack_right(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box,
                 const PlanePlace& to) {
  const std::int64_t tile_k = box.row_bytes / packer.numbers().bytes();
  if (form.kind == PlaneForm::Kind::matrix) {
    const TensorMap map = matrix_map(packer, gemm.k, gemm.n, tile_k, box.rows);
    if (gemm.b.along_k) return packer.rows(gemm.b.buffer, gemm.b.batch, gemm.n, gemm.b.n, map, to);
    return packer.turned({gemm.b.buffer, gemm.b.batch, gemm.n, gemm.k, gemm.b.k, gemm.n, 0}, map, to);
  }
  const ImageWalk walk(gemm);
  const bool turned = form.kind == PlaneForm::Kind::image_turned;
  const TensorMap map = places_map(ImagePlanes(gemm, walk).tensor(),
                                   turned ? walk.map_places(kChannelBlock, tile_k) : walk.map_places(tile_k, box.rows));
  const std::int64_t pixels = walk.rows() * walk.columns();
  return packer.turned({gemm.b.buffer, gemm.b.batch, walk.images() * pixels, walk.channels(), walk.channel_stride(),
                        pixels, walk.image_stride()},
                       map, to);
}

Stage pack_left(const Packer& packer, const Gemm& gemm, const PlaneForm& form, const PlaneBox& box,
                const PlanePlace& to) {
  const GemmLeft& a = gemm.a;
  const std::int64_t tile_k = box.row_bytes / packer.numbers().bytes();
  if (form.kind == PlaneForm::Kind::image_turned) {
    const bool blocked = a.block != 0;
    return packer.turned({a.buffer, a.batch, gemm.k, gemm.m, a.row, blocked ? a.block : gemm.k, blocked ? a.outer : 0},
                         matrix_map(packer, gemm.m, gemm.k, kChannelBlock, tile_k), to);
  }
  if (form.kind == PlaneForm::Kind::image) {
    const std::int64_t tap_blocks = form.channel_tiles * tile_k / packer.block();
    const std::int64_t depth = form.taps * tap_blocks * packer.block();
    return packer.filters(form, tap_blocks, ImageWalk(gemm).moves_backward(),
                          matrix_map(packer, depth, gemm.m, tile_k, box.columns), to);
  }
  const TensorMap map = matrix_map(packer, gemm.k, gemm.m, tile_k, box.columns);
  if (a.k == 1) return packer.rows(a.buffer, a.batch, gemm.m, a.row, map, to);
  return packer.turned({a.buffer, a.batch, gemm.m, gemm.k, a.k, gemm.m, 0}, map, to);
}

}  // namespace

PlaneNumbers plane_numbers(const Gemm& gemm) {
  const bool is_turned = kind_of(gemm) == PlaneForm::Kind::image_turned;
  switch (gemm.precision) {
    case Precision::tf32:
      if (is_turned) return {MapNumber::bf16, 2, "PRECISION=SPLIT_TF32"};
      return {MapNumber::f32, 1, matrix_precision(gemm.precision)};
    case Precision::bf16: return {MapNumber::bf16, 1, matrix_precision(gemm.precision)};
    case Precision::fp16: return {MapNumber::f16, 1, matrix_precision(gemm.precision)};
    case Precision::fp32: break;
  }
  return {MapNumber::bf16, 3, matrix_precision(gemm.precision)};
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
    const std::int64_t tiles = divide_up(walk.channels(), tile_k);
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

bool planes_serve(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  const PlaneForm::Kind kind = kind_of(gemm);
  if (kind == PlaneForm::Kind::matrix) {
    if (gemm.b.block != 0 || a.block != 0 || (a.k != 1 && a.row != 1)) return false;
  } else {
    const ImageWalk walk(gemm);
    if (!walk.is_plain()) return false;
    if (!map_holds(ImagePlanes(gemm, walk).tensor(), walk.map_places(kChannelBlock, kDeepestTile))) return false;
    // The units read numbers of 32 bits with k inside alone.
    if (kind == PlaneForm::Kind::image_turned &&
        (a.k != 1 || gemm.precision == Precision::tf32 || walk.moves_backward()))
      return false;
  }
  return plane_bytes(plane_slices(gemm).front()) <= kMostBytes;
}

std::vector<Gemm> plane_slices(const Gemm& gemm) {
  constexpr std::int64_t kUnit = 128, kMostSlices = 8;
  const bool can_be_cut = kind_of(gemm) == PlaneForm::Kind::matrix && gemm.batch == 1 && gemm.epilogue.text.empty();
  const std::int64_t bytes = plane_bytes(gemm);
  if (bytes <= kMostBytes || !can_be_cut) return {gemm};
  const std::int64_t a_row = round_up(gemm.k, plane_numbers(gemm).block()) * plane_numbers(gemm).bytes_of_all();
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
  constexpr double kAligned = 3e12,
                   kUnaligned = 1.5e12;  // bytes a second; rows of k that begin anywhere are read slower
  const bool is_matrix = kind_of(gemm) == PlaneForm::Kind::matrix;
  const bool slow_left = is_matrix && gemm.a.k == 1 && !in_fours({gemm.a.row, gemm.a.batch});
  const bool slow_right = is_matrix && gemm.b.along_k && !in_fours({gemm.b.n, gemm.b.batch});
  const PlaneSizes sizes = plane_sizes(gemm, plane_form(gemm, kDeepestTile), kDeepestTile);
  const auto bytes = static_cast<double>(4 + plane_numbers(gemm).bytes_of_all());
  return 2 * kLaunchSeconds + bytes * (static_cast<double>(sizes.left) / (slow_left ? kUnaligned : kAligned) +
                                       static_cast<double>(sizes.right) / (slow_right ? kUnaligned : kAligned));
}

BufferArgument pack_planes(Context& context, Gemm& gemm, const PlaneForm& form, const PlaneBox& box) {
  constexpr std::int64_t kAlignment = 256;
  const Packer packer(context, gemm);
  const PlaneNumbers& numbers = packer.numbers();
  const PlaneSizes sizes = plane_sizes(gemm, form, box.row_bytes / numbers.bytes());
  const std::int64_t maps = round_up(static_cast<std::int64_t>(gemm.before_bytes), kAlignment);
  const std::int64_t left = maps + 2 * static_cast<std::int64_t>(sizeof(TensorMap));
  const std::int64_t right = left + round_up(sizes.left * numbers.bytes_of_all(), kAlignment);
  const std::int64_t end = right + round_up(sizes.right * numbers.bytes_of_all(), kAlignment);

  const auto place = [&](std::int64_t at, std::int64_t plane, std::int64_t map) {
    return PlanePlace{plane / packer.block(), workspace(size(at), 16), workspace(size(map))};
  };
  Stage left_stage = pack_left(packer, gemm, form, box, place(left, sizes.left, maps));
  Stage right_stage = pack_right(packer, gemm, form, box,
                                 place(right, sizes.right, maps + static_cast<std::int64_t>(sizeof(TensorMap))));
  gemm.before.push_back(std::move(left_stage));
  gemm.before.push_back(std::move(right_stage));
  gemm.before_bytes = size(end);
  return workspace(size(maps), 1);
}

}  // namespace concord::opencl
