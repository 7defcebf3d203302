// Small matrix multiplications on the matrix cores of NVIDIA GPUs whose factors go from memory to registers
// (cl_kernels/gemm/direct.cl): the tiles, and the definitions and arguments of the kernel.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// `depth` turns of all warps are read at once.
struct DirectTile {
  GemmTile tile;
  std::int64_t n_tiles, depth;
};
constexpr std::int64_t kWarps = 8, kItems = 32 * kWarps, kTurn = 16 * kWarps;
// Rates were measured on an H200.
constexpr std::array<DirectTile, 3> kDirectTiles{{{{32, 32, kTurn, 1, 512, 2.0e11, 1.0}, 4, 2},
                                                  {{32, 16, kTurn, 2, 512, 2.0e11, 0.67}, 2, 4},
                                                  {{32, 8, kTurn, 2, 512, 1.2e11, 0.67}, 1, 4}}};

std::int64_t exchange_bytes(const DirectTile& direct) { return 4 * kWarps * direct.tile.m * direct.tile.n / 32 * 36; }

std::vector<GemmTile> tiles_for(const GpuModel& gpu) {
  std::vector<GemmTile> tiles;
  for (const DirectTile& one : kDirectTiles) {
    tiles.push_back(resident_tile(gpu, one.tile, exchange_bytes(one)));
    tiles.back().products_a_second *= gpu.matrix_a_second / kMeasuredMatrixASecond;
  }
  return tiles;
}

GemmPlan direct_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, tiles_for(context.gpu()));
}

std::string_view direct_refusal(const Context&, const Gemm& gemm) {
  if (gemm.b.is_patch) return "an operand is patches of an image";
  if (const std::string_view why = matrix_cores_refusal(gemm); !why.empty()) return why;
  return left_in_fours(gemm) && right_in_fours(gemm) ? kNoRefusal : "an operand cannot be read by fours";
}

std::unique_ptr<Kernel> prepare_direct_plan(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                            std::string_view label) {
  const DirectTile& direct = kDirectTiles[plan.tile];
  std::vector<std::string> definitions{fmt::format("WARPS={}", kWarps), fmt::format("N_TILES={}", direct.n_tiles),
                                       fmt::format("DEPTH={}", direct.depth),
                                       std::string(matrix_precision(gemm.precision))};
  const std::int64_t tiles = divide_up(gemm.m, direct.tile.m) * divide_up(gemm.n, direct.tile.n);
  Stage multiply{gemm_program(context, gemm, "gemm/direct.cl", plan.parts == 1, std::move(definitions)),
                 "gemm_direct_multiply",
                 gemm_arguments(gemm, plan.parts, plan.part),
                 {size(tiles * kItems), 1, size(gemm.batch * plan.parts)},
                 {size(kItems), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} direct {}", label, direct.tile.name()), std::move(multiply),
                     plan.parts);
}

std::string_view direct_device_refusal(Context& context, Precision precision) {
  if (!has_mma(context)) return kNoMatrixCores;
  const bool is_right = context.remembered(fmt::format("NVIDIA direct {}", name_of(precision)), [&] {
    return multiplies_right(context, "the matrix cores, without local memory,", precision,
                            [](Context& device, const Gemm& gemm, std::size_t tile_number) {
                              if (!direct_refusal(device, gemm).empty()) return std::unique_ptr<Kernel>();
                              return prepare_direct_plan(device, gemm,
                                                         whole_plan(gemm, tile_number % kDirectTiles.size()), "check");
                            });
  });
  return is_right ? kNoRefusal : kWrongProducts;
}

double direct_seconds(const Context& context, const Gemm& gemm) {
  // Each tile reads its factors anew: of more tiles, others share what they read.
  constexpr std::int64_t kMostTilesOfUnit = 4;
  const GemmPlan plan = direct_plan(context, gemm);
  const GemmTile& tile = kDirectTiles[plan.tile].tile;
  const std::int64_t tiles = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch * plan.parts;
  if (tiles > kMostTilesOfUnit * context.gpu().units) return INFINITY;
  return product_seconds_with_epilogue(context.gpu(), gemm, plan.seconds, 1);
}

std::unique_ptr<Kernel> prepare_direct(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_direct_plan(context, gemm, direct_plan(context, gemm), label);
}

std::vector<GemmTiling> direct_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, tiles_for(context.gpu()));
}

std::unique_ptr<Kernel> prepare_direct_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                              std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, tiles_for(context.gpu()), tiling);
  return plan ? prepare_direct_plan(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kDirectGemm{.name = "direct",
                                            .is_alternative_of = has_mma,
                                            .refusal = direct_refusal,
                                            .device_refusal = direct_device_refusal,
                                            .seconds = direct_seconds,
                                            .prepare = prepare_direct,
                                            .files = {"gemm/direct.cl"},
                                            .tilings = direct_tilings,
                                            .prepare_tiling = prepare_direct_tiling};

}  // namespace concord::opencl
