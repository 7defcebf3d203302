// The tiles of the copy engine's products and their expected times.
#include "concord/opencl/gemm/hopper/tma_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

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

/// Rate of one group on a compute unit of its own, of that of all which it can hold.
double share_of_one(const Gemm& gemm, const TmaTile& tile) {
  if (tile.resident == 1) return 1;
  return gemm.c.is_channels_last ? 0.75 : 0.6;
}

/// Products in one launch with k in parts of at most so many tiles.
struct TogetherCost {
  std::int64_t units;
  std::vector<std::int64_t> tiles_c, tiles_k;  // of each product
  double tile_seconds, ending;                 // of a tile of k and of the end of a work, on a compute unit of its own

  TogetherCost(const Context& context, std::span<const Gemm> products, const TmaTile& tile)
      : units(context.limits().compute_units) {
    const PlaneNumbers numbers = plane_numbers(products[0]);
    const std::int64_t depth = tile.depth(numbers);
    for (const Gemm& gemm : products) {
      const PlaneForm form = plane_form(gemm, depth);
      tiles_c.push_back(divide_up(form.rows, TmaTile::kTmaRows) * divide_up(gemm.m, tile.q) * gemm.batch);
      tiles_k.push_back(form.tiles_k);
    }
    tile_seconds = static_cast<double>(tile.q * TmaTile::kTmaRows * depth) /
                   (products_a_second(context, tile, numbers) * share_of_one(products[0], tile));
    ending = ending_seconds(products[0], tile);
  }
  [[nodiscard]] bool fills_alone() const { return std::ranges::max(tiles_c) >= units; }
  [[nodiscard]] std::int64_t works(std::int64_t part_tiles) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < tiles_c.size(); ++i) sum += tiles_c[i] * divide_up(tiles_k[i], part_tiles);
    return sum;
  }
  [[nodiscard]] double seconds(std::int64_t part_tiles) const {
    constexpr double kJoinSeconds = 3e-6;
    const std::int64_t longest = std::ranges::max(tiles_k), rounds = divide_up(works(part_tiles), units);
    const double join = part_tiles < longest ? kJoinSeconds : 0;
    return static_cast<double>(rounds) * (static_cast<double>(std::min(part_tiles, longest)) * tile_seconds + ending) +
           join;
  }
  /// The longest k, uncut, or the shortest part with which all works are on the device at once.
  [[nodiscard]] std::int64_t best_part() const {
    const std::int64_t longest = std::ranges::max(tiles_k);
    std::int64_t part = 1;
    while (part < longest && works(part) >= units) ++part;
    return seconds(part) < seconds(longest) ? part : longest;
  }
};

}  // namespace

std::span<const TmaTile> tma_tiles(const Gemm& gemm) {
  switch (plane_numbers(gemm).products) {
    case 6: return kSixProducts;
    case 3: return kThreeProducts;
    default: break;
  }
  if (gemm.c.is_channels_last) return kImageProduct;
  return gemm.precision == Precision::tf32 ? kOneProduct : kRoundedProduct;
}

std::optional<TmaPlan> tma_plan_with(const Context& context, const Gemm& gemm, const TmaTile& tile) {
  if (!suits_filters(gemm, tile)) return std::nullopt;
  const PlaneNumbers numbers = plane_numbers(gemm);
  const std::int64_t depth = tile.depth(numbers);
  const PlaneForm form = plane_form(gemm, depth);
  Gemm padded = gemm;
  padded.n = form.rows;
  padded.k = form.tiles_k * depth;
  const double rate = products_a_second(context, tile, numbers);
  const GemmPlan plan = gemm_plan(context.gpu(), padded,
                                  {{tile.q, TmaTile::kTmaRows, depth, tile.resident,
                                    tile.filling + ending(gemm, tile, rate), rate, share_of_one(gemm, tile)}});
  return TmaPlan{tile, plan.parts, divide_up(plan.part, depth), plan.seconds};
}

TmaPlan tma_plan(const Context& context, const Gemm& gemm) {
  TmaPlan best{};
  for (const TmaTile& tile : tma_tiles(gemm)) {
    const std::optional<TmaPlan> plan = tma_plan_with(context, gemm, tile);
    if (plan && (best.seconds == 0 || plan->seconds < best.seconds)) best = *plan;
  }
  return best;
}

std::optional<TmaPlan> tma_cut_plan(const Gemm& gemm, const TmaTile& tile, std::int64_t parts) {
  if (!suits_filters(gemm, tile)) return std::nullopt;
  const std::int64_t tiles_k = plane_form(gemm, tile.depth(plane_numbers(gemm))).tiles_k;
  if (parts < 1 || parts > tiles_k) return std::nullopt;
  const std::int64_t part_tiles = divide_up(tiles_k, parts);
  return TmaPlan{tile, divide_up(tiles_k, part_tiles), part_tiles, 0};
}

std::vector<TmaPlan> tma_plans_together(const Context& context, std::span<const Gemm> products) {
  std::vector<TmaPlan> best;
  for (const TmaTile& tile : tma_tiles(products[0])) {
    const TogetherCost cost(context, products, tile);
    if (!suits_filters(products[0], tile) || cost.fills_alone()) continue;
    const std::int64_t part_tiles = cost.best_part();
    if (!best.empty() && best[0].seconds <= cost.seconds(part_tiles)) continue;
    best.clear();
    for (const std::int64_t tiles_k : cost.tiles_k) {
      best.push_back({tile, divide_up(tiles_k, part_tiles), std::min(part_tiles, tiles_k), cost.seconds(part_tiles)});
    }
  }
  return best;
}

double seconds_of_one(const Context& context, const Gemm& gemm) {
  double least = INFINITY;
  for (const TmaTile& tile : tma_tiles(gemm)) {
    if (!suits_filters(gemm, tile)) continue;
    const TogetherCost cost(context, {&gemm, 1}, tile);
    least = std::min(least, cost.seconds(cost.best_part()));
  }
  return least;
}

bool fills_device(const Context& context, const Gemm& gemm) {
  return TogetherCost(context, {&gemm, 1}, tma_tiles(gemm).front()).fills_alone();
}

bool can_join_parts(const Context& context, std::int64_t works) { return works < context.limits().compute_units; }

}  // namespace concord::opencl
