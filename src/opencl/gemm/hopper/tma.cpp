// Matrix multiplications on the matrix cores of NVIDIA's Hopper GPUs from packed operands that the copy engine
// transfers (cl_kernels/gemm/hopper/tma.cl): the tiles, and the definitions and arguments of the kernel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/hopper/pack.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

struct TmaTile {
  std::int64_t q, row_bytes, stages, staged_q, resident, filling;
  double teraflops;                // of one product; measured on an H200, as the next member
  double ending_microseconds = 0;  // from the last sum to the next tile, where the result lies channels-last
  static constexpr std::int64_t kWarpgroups = 2, kTmaRows = 64 * kWarpgroups;
  [[nodiscard]] std::int64_t depth(const PlaneNumbers& numbers) const { return row_bytes / numbers.bytes(); }
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}, {} bytes", q, kTmaRows, row_bytes); }
};
// A stage holds a tile of each plane that a product reads.
constexpr std::array<TmaTile, 2> kSixProducts{{{128, 64, 4, 32, 1, 0, 880}, {64, 64, 3, 8, 2, 0, 800}}};
constexpr std::array<TmaTile, 2> kThreeProducts{{{128, 64, 6, 32, 1, 16, 713}, {64, 64, 4, 8, 2, 64, 620}}};
constexpr std::array<TmaTile, 4> kOneProduct{{{256, 128, 4, 16, 1, 0, 890},
                                              {128, 128, 6, 32, 1, 0, 770},
                                              {64, 128, 4, 16, 2, 0, 560},
                                              {64, 64, 6, 32, 2, 0, 450}}};
// The same for 16-bit factors and fp32 results, such as gradients of weights of 16-bit images.
constexpr std::array<TmaTile, 4> kRoundedProduct{{{256, 128, 4, 16, 1, 192, 650},
                                                  {128, 128, 6, 32, 1, 192, 500},
                                                  {64, 128, 4, 16, 2, 192, 400},
                                                  {64, 64, 6, 32, 2, 192, 300}}};
// The same for results that are 16-bit images: fitted to 446 measurements of resnet50, mobilenet_v2 and googlenet.
constexpr std::array<TmaTile, 4> kImageProduct{{{256, 128, 4, 16, 1, 0, 810, 3.5},
                                                {128, 128, 6, 32, 1, 0, 610, 1.25},
                                                {64, 128, 4, 16, 2, 0, 420, 1.25},
                                                {64, 64, 6, 32, 2, 0, 420, 1.25}}};

/// Whether filters, if the left operand is any, are padded to whole tiles of this depth.
bool suits_filters(const Gemm& gemm, const TmaTile& tile) {
  return gemm.a.filter_channels % tile.depth(plane_numbers(gemm)) == 0;
}

std::span<const TmaTile> tiles_of(const Gemm& gemm) {
  switch (plane_numbers(gemm).products) {
    case 6: return kSixProducts;
    case 3: return kThreeProducts;
    default: break;
  }
  if (gemm.c.is_channels_last) return kImageProduct;
  return gemm.precision == Precision::tf32 ? kOneProduct : kRoundedProduct;
}

/// A tile, the cut of k in tiles, and the expected time of the multiplication.
struct TmaPlan {
  TmaTile tile;
  std::int64_t parts, part_tiles;
  double seconds;
};

double products_a_second(const Context& context, const TmaTile& tile, const PlaneNumbers& numbers) {
  // Values of twice the width take twice as long.
  const double slower = static_cast<double>(numbers.products * numbers.bytes()) / 2;
  return tile.teraflops * 1e12 / 2 / slower / context.limits().compute_units;
}

/// The sums of a tile pass through local memory in chunks; each chunk waits for the operands of the epilogue. Measured
/// on an H200.
double ending_seconds(const Gemm& gemm, const TmaTile& tile) {
  constexpr double kChunkSeconds = 0.8e-6, kImageOperand = 0.6;
  const auto operands = static_cast<double>(gemm.epilogue.operands());
  if (gemm.c.is_channels_last) {
    // Registers do not hold the operands of long chunks.
    constexpr double kMostOperands = 4, kSpilling = 3;
    constexpr std::int64_t kShortChunk = 16;
    const double slower = tile.staged_q > kShortChunk && operands > kMostOperands ? kSpilling : 1;
    return tile.ending_microseconds * 1e-6 * (1 + kImageOperand * operands) * slower;
  }
  return kChunkSeconds * static_cast<double>(tile.q / tile.staged_q) * (1 + operands);
}

/// The length of k that a group processes in the time of a tile's end.
std::int64_t ending(const Gemm& gemm, const TmaTile& tile, double products_a_second) {
  const double of_a_group = products_a_second / static_cast<double>(tile.resident);
  return static_cast<std::int64_t>(ending_seconds(gemm, tile) * of_a_group /
                                   static_cast<double>(tile.q * TmaTile::kTmaRows));
}

/// The cut of k with the least expected time for a tile.
TmaPlan plan_with(const Context& context, const Gemm& gemm, const TmaTile& tile) {
  const PlaneNumbers numbers = plane_numbers(gemm);
  const std::int64_t depth = tile.depth(numbers);
  const PlaneForm form = plane_form(gemm, depth);
  Gemm padded = gemm;
  padded.n = form.rows;
  padded.k = form.tiles_k * depth;
  const double rate = products_a_second(context, tile, numbers), share_of_two = gemm.c.is_channels_last ? 0.75 : 0.6;
  const GemmPlan plan =
      gemm_plan(context.gpu(), padded,
                {{tile.q, TmaTile::kTmaRows, depth, tile.resident, tile.filling + ending(gemm, tile, rate), rate,
                  tile.resident == 1 ? 1.0 : share_of_two}});
  return {tile, plan.parts, divide_up(plan.part, depth), plan.seconds};
}

/// The plan with the fastest tile: the time to move and pack operands is the same for all tiles.
TmaPlan tma_plan(const Context& context, const Gemm& gemm) {
  TmaPlan best{};
  for (const TmaTile& tile : tiles_of(gemm)) {
    if (!suits_filters(gemm, tile)) continue;
    const TmaPlan plan = plan_with(context, gemm, tile);
    if (best.seconds == 0 || plan.seconds < best.seconds) best = plan;
  }
  return best;
}

/// The plan with k in `parts` parts or slightly fewer; nothing where k is too short or the tile does not suit.
std::optional<TmaPlan> cut_plan(const Gemm& gemm, const TmaTile& tile, std::int64_t parts) {
  if (!suits_filters(gemm, tile)) return std::nullopt;
  const std::int64_t tiles_k = plane_form(gemm, tile.depth(plane_numbers(gemm))).tiles_k;
  if (parts < 1 || parts > tiles_k) return std::nullopt;
  const std::int64_t part_tiles = divide_up(tiles_k, parts);
  return TmaPlan{tile, divide_up(tiles_k, part_tiles), part_tiles, 0};
}

/// Whether the launch that makes the parts of k adds them up, too. Its groups wait for each other, so all must be on
/// the device at once, also beside a kernel that waits for another device.
bool joins_parts(const Context& context, const TmaPlan& plan, std::int64_t works) {
  return plan.parts > 1 && works < context.limits().compute_units;
}

std::unique_ptr<Kernel> prepare_plan(Context& context, const Gemm& gemm, const TmaPlan& plan, std::string_view label) {
  const TmaTile& tile = plan.tile;
  const PlaneNumbers numbers = plane_numbers(gemm);
  const PlaneForm form = plane_form(gemm, tile.depth(numbers));
  Gemm packed = gemm;
  const PackedPlanes planes = pack_planes(context, packed, form, {TmaTile::kTmaRows, tile.q, tile.row_bytes});
  if (form.kind == PlaneForm::Kind::image_turned && !gemm.c.has_taps_outside) packed.c = form.channels_first(gemm.c);

  const std::int64_t tiles_r = divide_up(form.rows, TmaTile::kTmaRows), tiles_q = divide_up(gemm.m, tile.q);
  const std::int64_t works = tiles_r * tiles_q * gemm.batch * plan.parts;
  const auto count = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  std::vector<Argument> extra{planes.maps,         count(tiles_r),
                              count(form.tiles_k), count(plan.part_tiles),
                              count(works),        count(form.channel_tiles),
                              count(form.images)};
  extra.insert(extra.end(), planes.scales.begin(), planes.scales.end());
  const RightOperand right = right_operand(context, gemm);
  extra.insert(extra.end(), right.arguments.begin(), right.arguments.end());
  const bool joins = joins_parts(context, plan, works);
  const std::int64_t meetings = tiles_r * tiles_q * gemm.batch;
  const KeptArgument meeting = kept(size(meetings) * sizeof(std::uint32_t));
  if (joins) extra.insert(extra.end(), {workspace(packed.before_bytes), meeting, count(plan.parts)});

  constexpr std::int64_t kThreads = TmaTile::kWarpgroups * 128 + 32;
  const std::int64_t groups = std::min(works, tile.resident * std::int64_t{context.limits().compute_units});
  std::vector<std::string> definitions{
      std::string(form.definition()),        fmt::format("WARPGROUPS={}", TmaTile::kWarpgroups),
      fmt::format("TILE_Q={}", tile.q),      fmt::format("ROW_BYTES={}", tile.row_bytes),
      fmt::format("STAGES={}", tile.stages), fmt::format("STAGED_Q={}", tile.staged_q)};
  definitions.insert(definitions.end(), numbers.definitions.begin(), numbers.definitions.end());
  if (joins) definitions.emplace_back("JOINED");
  const bool finishes = plan.parts == 1 || joins;
  Stage multiply{gemm_program(context, packed, "gemm/hopper/tma.cl", finishes, std::move(definitions)),
                 "gemm_tma_multiply",
                 gemm_arguments(packed, finishes ? 1 : plan.parts, gemm.k, extra),
                 {size(groups * kThreads), 1, 1},
                 {size(kThreads), 1, 1}};
  std::string name = fmt::format("{} tma {}x{}{}", label, tile.q, TmaTile::kTmaRows, gemm.is_scaled ? " scaled" : "");
  if (!joins) return gemm_staged(context, packed, std::move(name), std::move(multiply), plan.parts);
  std::vector<StagedKernel::AnyStage> stages(packed.before.begin(), packed.before.end());
  stages.emplace_back(Stage{.program = multiply.program,
                            .function = "meetings_begin",
                            .arguments = {meeting},
                            .global = {size(meetings), 1, 1},
                            .once = true});
  stages.emplace_back(std::move(multiply));
  name += fmt::format(", k in {} joined", plan.parts);
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages),
                                        gemm_workspace(packed, plan.parts));
}

/// The kernel for the problem, or for its slices one after the other, each with the plan of `plan`.
template <class Plan>
std::unique_ptr<Kernel> prepare_slices(Context& context, const Gemm& gemm, std::string_view label, const Plan& plan) {
  const std::vector<Gemm> slices = plane_slices(gemm);
  if (slices.size() == 1) return prepare_plan(context, gemm, plan(gemm), label);
  std::vector<StagedKernel::AnyStage> stages;
  std::size_t bytes = 0;
  std::string name;
  for (const Gemm& slice : slices) {
    const std::unique_ptr<Kernel> kernel = prepare_plan(context, slice, plan(slice), label);
    const auto& more = dynamic_cast<const StagedKernel&>(*kernel).stages();
    stages.insert(stages.end(), more.begin(), more.end());
    bytes = std::max(bytes, kernel->workspace());
    name = kernel->name();
  }
  name += fmt::format(", {} slices", slices.size());
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes);
}

/// A kernel with one tile of the list, and k in one piece, or in two where it has several tiles.
std::unique_ptr<Kernel> prepare_checked_tile(Context& context, const Gemm& gemm, std::size_t tile_number) {
  if (!matrix_cores_refusal(gemm).empty() || !supports_packing(gemm)) return nullptr;
  const std::span<const TmaTile> tiles = tiles_of(gemm);
  const TmaTile& tile = tiles[tile_number % tiles.size()];
  const bool is_long = plane_form(gemm, tile.depth(plane_numbers(gemm))).tiles_k > 2;
  return prepare_plan(context, gemm, cut_plan(gemm, tile, is_long ? 2 : 1).value(), "check");
}

std::string_view device_refusal(Context& context, std::string_view units, Precision precision,
                                const CheckedPreparation& prepare) {
  if (!is_hopper(context)) return kNotHopper;
  const bool is_right = context.remembered(fmt::format("{} in {}", units, name_of(precision)),
                                           [&] { return multiplies_right(context, units, precision, prepare); });
  return is_right ? kNoRefusal : kWrongProducts;
}

std::string_view refusal(const Gemm& gemm) {
  if (gemm.partial) return "it is part of a larger kernel";
  if (const std::string_view why = matrix_cores_refusal(gemm); !why.empty()) return why;
  return supports_packing(gemm) ? kNoRefusal : "the copy engine cannot load the operands, or they need too much memory";
}

double seconds_of(const Context& context, const Gemm& gemm) {
  if (!is_for_matrix_cores(gemm)) return INFINITY;
  double seconds = 0;
  for (const Gemm& slice : plane_slices(gemm)) {
    seconds += product_seconds(context.gpu(), slice, tma_plan(context, slice).seconds, 1) + pack_seconds(slice);
  }
  return seconds;
}

std::vector<GemmTiling> tilings_of(const Context& context, const Gemm& gemm) {
  const Gemm slice = plane_slices(gemm).front();
  std::vector<GemmTiling> list;
  for (const TmaTile& tile : tiles_of(gemm)) {
    for (const std::int64_t parts : parts_around(plan_with(context, slice, tile).parts)) {
      if (cut_plan(slice, tile, parts)) list.push_back({tile.name(), parts});
    }
  }
  return list;
}

std::unique_ptr<Kernel> prepare_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                       std::string_view label) {
  const std::span<const TmaTile> tiles = tiles_of(gemm);
  const auto tile = std::ranges::find(tiles, tiling.tile, &TmaTile::name);
  if (tile == tiles.end() || !cut_plan(gemm, *tile, tiling.parts)) return nullptr;
  return prepare_slices(context, gemm, label,
                        [&](const Gemm& slice) { return cut_plan(slice, *tile, tiling.parts).value(); });
}

std::unique_ptr<Kernel> prepare_planned(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_slices(context, gemm, label, [&](const Gemm& slice) { return tma_plan(context, slice); });
}

Gemm scaled(Gemm gemm) {
  gemm.is_scaled = true;
  return gemm;
}

std::unique_ptr<Kernel> prepare_scaled(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_planned(context, scaled(gemm), label);
}

std::unique_ptr<Kernel> prepare_scaled_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                              std::string_view label) {
  return prepare_tiling(context, scaled(gemm), tiling, label);
}

}  // namespace

std::int64_t filter_channels(Context& context, const Gemm& gemm) {
  std::optional<GemmChoice> tuned;
  if (Tuning* const tuning = context.tuning()) tuned = tuning->known(gemm);
  const std::span<const TmaTile> tiles = tiles_of(gemm);
  const auto chosen =
      tuned && tuned->tiling ? std::ranges::find(tiles, tuned->tiling->tile, &TmaTile::name) : tiles.end();
  const TmaTile& tile = chosen != tiles.end() ? *chosen : tma_plan(context, gemm).tile;
  return round_up(ImageWalk(gemm).channels(), tile.depth(plane_numbers(gemm)));
}

extern const GemmImplementation kTmaGemm{.name = "tma",
                                         .is_alternative_of = is_hopper,
                                         .refusal = [](const Context&, const Gemm& gemm) { return refusal(gemm); },
                                         .device_refusal =
                                             [](Context& context, Precision precision) {
                                               return device_refusal(context, "the matrix cores with the copy engine",
                                                                     precision, prepare_checked_tile);
                                             },
                                         .seconds = seconds_of,
                                         .prepare = prepare_planned,
                                         .files = {"gemm/hopper/tma.cl", "gemm/hopper/pack.cl"},
                                         .tilings = tilings_of,
                                         .prepare_tiling = prepare_tiling,
                                         .reads_channels_last = true};

/// fp32 by three products of scaled fp16 values, tf32 by one.
extern const GemmImplementation kScaledGemm{
    .name = "scaled",
    .is_alternative_of = is_hopper,
    .refusal =
        [](const Context&, const Gemm& gemm) {
          return can_be_scaled(gemm) ? refusal(scaled(gemm)) : "the precision has 16 bits";
        },
    .device_refusal =
        [](Context& context, Precision precision) {
          return device_refusal(context, "the matrix cores with scaled fp16 numbers", precision,
                                [](Context& in, const Gemm& gemm, std::size_t tile_number) {
                                  return prepare_checked_tile(in, scaled(gemm), tile_number);
                                });
        },
    .seconds = [](const Context& context, const Gemm& gemm) { return seconds_of(context, scaled(gemm)); },
    .prepare = prepare_scaled,
    .files = {"gemm/hopper/tma.cl", "gemm/hopper/pack.cl", "gemm/hopper/measure.cl"},
    .tilings = [](const Context& context, const Gemm& gemm) { return tilings_of(context, scaled(gemm)); },
    .prepare_tiling = prepare_scaled_tiling};

}  // namespace concord::opencl
