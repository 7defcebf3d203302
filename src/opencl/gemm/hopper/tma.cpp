// Matrix multiplications on the matrix cores of NVIDIA's Hopper GPUs from packed operands that the copy engine
// transfers (cl_kernels/gemm/hopper/tma.cl), as implementations that prepare_gemm chooses among.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/hopper/tma_launch.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// The kernel for the problem, or for its slices one after the other, each with the plan of `plan`.
template <class Plan>
std::unique_ptr<Kernel> prepare_slices(Context& context, const Gemm& gemm, std::string_view label, const Plan& plan) {
  const std::vector<Gemm> slices = plane_slices(gemm);
  if (slices.size() == 1) return prepare_tma_launch(context, {&gemm, 1}, std::array{plan(gemm)}, label);
  std::vector<StagedKernel::AnyStage> stages;
  std::size_t bytes = 0;
  std::string name;
  for (const Gemm& slice : slices) {
    const std::unique_ptr<Kernel> kernel = prepare_tma_launch(context, {&slice, 1}, std::array{plan(slice)}, label);
    const auto& more = dynamic_cast<const StagedKernel&>(*kernel).stages();
    stages.insert(stages.end(), more.begin(), more.end());
    bytes = std::max(bytes, kernel->workspace());
    name = kernel->name();
  }
  name += fmt::format(", {} slices", slices.size());
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes);
}

/// A kernel with one tile of the list, and k in one piece, or in two where it has several tiles. In one piece, one
/// group has all works, so that it claims those behind its first two.
std::unique_ptr<Kernel> prepare_checked_tile(Context& context, const Gemm& gemm, std::size_t tile_number) {
  if (!matrix_cores_refusal(gemm).empty() || !supports_packing(gemm)) return nullptr;
  const std::span<const TmaTile> tiles = tma_tiles(gemm);
  const TmaTile& tile = tiles[tile_number % tiles.size()];
  const bool is_long = plane_form(gemm, tile.depth(plane_numbers(gemm))).tiles_k > 2;
  TmaPlan plan = tma_cut_plan(gemm, tile, is_long ? 2 : 1).value();
  if (plan.parts == 1) plan.most_groups = 1;
  return prepare_tma_launch(context, {&gemm, 1}, {&plan, 1}, "check");
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
  for (const TmaTile& tile : tma_tiles(gemm)) {
    const std::optional<TmaPlan> plan = tma_plan_with(context, slice, tile);
    if (!plan) continue;
    for (const std::int64_t parts : parts_around(plan->parts)) {
      if (tma_cut_plan(slice, tile, parts)) list.push_back({tile.name(), parts});
    }
  }
  return list;
}

std::unique_ptr<Kernel> prepare_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                       std::string_view label) {
  const std::span<const TmaTile> tiles = tma_tiles(gemm);
  const auto tile = std::ranges::find(tiles, tiling.tile, &TmaTile::name);
  if (tile == tiles.end() || !tma_cut_plan(gemm, *tile, tiling.parts)) return nullptr;
  return prepare_slices(context, gemm, label,
                        [&](const Gemm& slice) { return tma_cut_plan(slice, *tile, tiling.parts).value(); });
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

std::unique_ptr<Kernel> prepare_together(Context& context, std::span<const Gemm> products, std::string_view label) {
  if (products.size() < 2 || products.size() > kMostInOneLaunch) return nullptr;
  const std::vector<TmaPlan> plans = tma_plans_together(context, products);
  if (plans.empty()) return nullptr;
  double apart = kLaunchSeconds * static_cast<double>(products.size() - 1);
  for (const Gemm& gemm : products) apart += seconds_of_one(context, gemm);
  if (plans[0].seconds > apart) return nullptr;
  // One program serves all, and the copy engine gives zeros outside the image whether patches reach there or not.
  std::vector<Gemm> members(products.begin(), products.end());
  for (Gemm& member : members) member.patch.inside = false;
  return prepare_tma_launch(context, members, plans, label);
}

std::unique_ptr<Kernel> prepare_together_in(Context& context, std::span<const Gemm> products, std::int64_t parts,
                                            std::string_view label) {
  const TmaTile& tile = tma_tiles(products[0]).back();
  std::vector<TmaPlan> plans;
  for (const Gemm& gemm : products) {
    const std::int64_t most = plane_form(gemm, tile.depth(plane_numbers(gemm))).tiles_k;
    plans.push_back(tma_cut_plan(gemm, tile, std::min(parts, most)).value());
  }
  if (parts == 1) plans.front().most_groups = 1;
  return prepare_tma_launch(context, products, plans, label);
}

std::int64_t filter_channels(Context& context, const Gemm& gemm) {
  std::optional<GemmChoice> tuned;
  if (Tuning* const tuning = context.tuning()) tuned = tuning->known(gemm);
  const std::span<const TmaTile> tiles = tma_tiles(gemm);
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
