// Matrix multiplications on the matrix cores of NVIDIA's Hopper GPUs by warpgroups (cl_kernels/gemm/hopper/wgmma.cl):
// one stage packs the left operand, the next one multiplies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kTileK = 32;

struct WgmmaTile {
  GemmTile tile;  // m columns, n rows of what the units see
  std::int64_t stages;
  double one_product;  // the rate of one product relative to that of six
  [[nodiscard]] std::int64_t warpgroups() const { return tile.n / 64; }
};
// Rates were measured on an H200.
constexpr std::array<WgmmaTile, 4> kWgmmaTiles{{{{128, 128, kTileK, 1, 160, 3.24e11, 1.0}, 4, 1.4},
                                                {{64, 128, kTileK, 1, 72, 2.2e11, 1.0}, 4, 1.5},
                                                {{128, 64, kTileK, 2, 64, 3.4e11, 0.6}, 3, 1.3},
                                                {{64, 64, kTileK, 3, 48, 2.3e11, 0.45}, 3, 1.0}}};

/// Bytes per element of the packed left operand.
std::int64_t packed_bytes(Precision precision) {
  if (precision == Precision::fp32) return 3 * 2;
  return precision == Precision::tf32 ? 4 : 2;
}

std::vector<GemmTile> tiles_for(const Gemm& gemm) {
  std::vector<GemmTile> tiles;
  for (const WgmmaTile& one : kWgmmaTiles) {
    tiles.push_back(one.tile);
    if (gemm.precision != Precision::fp32) tiles.back().products_a_second *= one.one_product;
  }
  return tiles;
}

GemmPlan wgmma_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, tiles_for(gemm));
}

std::unique_ptr<Kernel> prepare_wgmma_tile(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                           std::string_view label) {
  const WgmmaTile& wgmma = kWgmmaTiles[plan.tile];
  const std::string width = fmt::format("TILE_Q={}", wgmma.tile.m), precision(matrix_precision(gemm.precision));
  const std::int64_t tiles_q = divide_up(gemm.m, wgmma.tile.m), tiles_k = divide_up(gemm.k, kTileK);

  Gemm packed = gemm;
  const BufferArgument place = workspace(gemm.before_bytes, 16);
  packed.before_bytes += size(gemm.batch * tiles_k * tiles_q * wgmma.tile.m * kTileK * packed_bytes(gemm.precision));
  constexpr std::int64_t kPackers = 64;
  const std::int64_t packed_at_once = gemm.precision == Precision::tf32 ? 4 : 8;
  std::vector<Argument> arguments{static_cast<std::uint32_t>(gemm.m), static_cast<std::uint32_t>(gemm.k)};
  const std::vector<Argument> left = gemm_left_arguments(gemm);
  arguments.insert(arguments.end(), left.begin(), left.end());
  arguments.emplace_back(place);
  packed.before.push_back({gemm_program(context, gemm, "gemm/hopper/wgmma_pack.cl", false, {width, precision}),
                           "gemm_wgmma_pack",
                           {PackedArguments{std::move(arguments)}},
                           {size(tiles_q * wgmma.tile.m), size(tiles_k * kTileK / packed_at_once), size(gemm.batch)},
                           {size(kPackers), 1, 1}});

  const RightOperand right = right_operand(context, gemm);
  std::vector<Argument> extra{place};
  extra.insert(extra.end(), right.arguments.begin(), right.arguments.end());
  const std::int64_t threads = wgmma.warpgroups() * 128;
  Stage multiply{gemm_program(context, gemm, "gemm/hopper/wgmma.cl", plan.parts == 1,
                              {width, precision, fmt::format("WARPGROUPS={}", wgmma.warpgroups()),
                               fmt::format("STAGES={}", wgmma.stages), right.fours ? "B_VECTOR=4" : "B_VECTOR=1"}),
                 "gemm_wgmma_multiply",
                 gemm_arguments(packed, plan.parts, plan.part, extra),
                 {size(tiles_q * divide_up(gemm.n, wgmma.tile.n) * threads), 1, size(gemm.batch * plan.parts)},
                 {size(threads), 1, 1}};
  return gemm_staged(context, packed, fmt::format("{} wgmma {}", label, wgmma.tile.name()), std::move(multiply),
                     plan.parts);
}

std::string_view wgmma_device_refusal(Context& context, Precision precision) {
  if (!is_hopper(context)) return kNotHopper;
  const bool is_right = context.remembered(fmt::format("NVIDIA wgmma {}", name_of(precision)), [&] {
    return multiplies_right(context, "the warpgroup instructions of the matrix cores", precision,
                            [](Context& device, const Gemm& gemm, std::size_t tile_number) {
                              return prepare_wgmma_tile(device, gemm,
                                                        whole_plan(gemm, tile_number % kWgmmaTiles.size()), "check");
                            });
  });
  return is_right ? kNoRefusal : kWrongProducts;
}

std::string_view wgmma_refusal(const Context&, const Gemm& gemm) {
  return gemm.partial ? "it is part of a larger kernel" : matrix_cores_refusal(gemm);
}

double wgmma_seconds(const Context& context, const Gemm& gemm) {
  if (!is_for_matrix_cores(gemm)) return INFINITY;
  constexpr double kPackedBytesASecond = 1e12;
  const std::int64_t packed = gemm.batch * gemm.m * gemm.k * (4 + packed_bytes(gemm.precision));
  return product_seconds_with_epilogue(context.gpu(), gemm, wgmma_plan(context, gemm).seconds, 2) +
         static_cast<double>(packed) / kPackedBytesASecond;
}

std::unique_ptr<Kernel> prepare_wgmma(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_wgmma_tile(context, gemm, wgmma_plan(context, gemm), label);
}

std::vector<GemmTiling> wgmma_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, tiles_for(gemm));
}

std::unique_ptr<Kernel> prepare_wgmma_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                             std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, tiles_for(gemm), tiling);
  return plan ? prepare_wgmma_tile(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kWgmmaGemm{.name = "wgmma",
                                           .is_alternative_of = is_hopper,
                                           .refusal = wgmma_refusal,
                                           .device_refusal = wgmma_device_refusal,
                                           .seconds = wgmma_seconds,
                                           .prepare = prepare_wgmma,
                                           .files = {"gemm/hopper/wgmma.cl", "gemm/hopper/wgmma_pack.cl"},
                                           .tilings = wgmma_tilings,
                                           .prepare_tiling = prepare_wgmma_tiling};

}  // namespace concord::opencl
