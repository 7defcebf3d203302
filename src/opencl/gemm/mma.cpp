// Matrix multiplications on the matrix cores of NVIDIA GPUs by warps (cl_kernels/gemm/mma.cl): the tiles, and the
// definitions and arguments of the kernel.
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

struct MmaTile {
  GemmTile tile;
  std::int64_t warp_m, warp_n, stages;
  double one_product;  // the rate of one product relative to that of three
  [[nodiscard]] std::int64_t threads() const { return tile.m / warp_m * (tile.n / warp_n) * 32; }
  /// At most: of operands along k, whose rows are padded by four values.
  [[nodiscard]] std::int64_t local_bytes() const { return 4 * stages * (tile.m + tile.n) * (tile.k + 4); }
};
// Rates were measured on an H200. For other generations they are scaled by the ratio of the matrix cores' rates.
constexpr std::array<MmaTile, 4> kMmaTiles{{{{128, 128, 16, 1, 8, 1.82e11, 1.0}, 64, 32, 4, 1.75},
                                            {{128, 64, 16, 3, 8, 1.85e11, 0.45}, 64, 32, 4, 1.45},
                                            {{64, 128, 16, 3, 8, 1.75e11, 0.45}, 64, 32, 4, 1.35},
                                            {{64, 64, 16, 4, 64, 1.5e11, 0.4}, 32, 32, 4, 1.3}}};
constexpr std::int64_t kMmaBand = 16;

std::vector<GemmTile> tiles_for(const GpuModel& gpu, const Gemm& gemm) {
  std::vector<GemmTile> tiles;
  for (const MmaTile& one : kMmaTiles) {
    tiles.push_back(resident_tile(gpu, one.tile, one.local_bytes()));
    tiles.back().products_a_second *= gpu.matrix_a_second / kMeasuredMatrixASecond;
    if (gemm.precision != Precision::fp32) tiles.back().products_a_second *= one.one_product;
  }
  return tiles;
}

GemmPlan mma_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, tiles_for(context.gpu(), gemm));
}

bool result_in_pairs(const Gemm& gemm, std::int64_t parts) {
  const GemmResult& c = gemm.c;
  if (gemm.n % 2 != 0) return false;
  return parts > 1 || (!c.is_stepped() && c.row % 2 == 0 && c.batch % 2 == 0 && c.block % 2 == 0 && c.outer % 2 == 0);
}

std::unique_ptr<Kernel> prepare_mma_tile(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                         std::string_view label) {
  const MmaTile& mma = kMmaTiles[plan.tile];
  const RightOperand right = right_operand(context, gemm);
  std::vector<std::string> definitions{fmt::format("TILE_M={}", mma.tile.m),
                                       fmt::format("TILE_N={}", mma.tile.n),
                                       fmt::format("TILE_K={}", mma.tile.k),
                                       fmt::format("WARP_M={}", mma.warp_m),
                                       fmt::format("WARP_N={}", mma.warp_n),
                                       fmt::format("THREADS={}", mma.threads()),
                                       fmt::format("STAGES={}", mma.stages),
                                       fmt::format("BAND={}", kMmaBand),
                                       left_in_fours(gemm) ? "A_VECTOR=4" : "A_VECTOR=1",
                                       right.fours ? "B_VECTOR=4" : "B_VECTOR=1",
                                       std::string(matrix_precision(gemm.precision))};
  if (result_in_pairs(gemm, plan.parts)) definitions.emplace_back("C_PAIRS");
  const std::int64_t tiles = divide_up(gemm.m, mma.tile.m) * divide_up(gemm.n, mma.tile.n);
  Stage multiply{gemm_program(context, gemm, "gemm/mma.cl", plan.parts == 1, std::move(definitions)),
                 "gemm_mma_multiply",
                 gemm_arguments(gemm, plan.parts, plan.part, right.arguments),
                 {size(tiles * mma.threads()), 1, size(gemm.batch * plan.parts)},
                 {size(mma.threads()), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} mma {}", label, mma.tile.name()), std::move(multiply), plan.parts);
}

std::string_view mma_device_refusal(Context& context, Precision precision) {
  if (!has_mma(context)) return kNoMatrixCores;
  const bool is_right = context.remembered(fmt::format("NVIDIA mma {}", name_of(precision)), [&] {
    return multiplies_right(
        context, "the matrix cores", precision, [](Context& device, const Gemm& gemm, std::size_t tile_number) {
          return prepare_mma_tile(device, gemm, whole_plan(gemm, tile_number % kMmaTiles.size()), "check");
        });
  });
  return is_right ? kNoRefusal : kWrongProducts;
}

double mma_seconds(const Context& context, const Gemm& gemm) {
  if (!is_for_matrix_cores(gemm)) return INFINITY;
  return product_seconds_with_epilogue(context.gpu(), gemm, mma_plan(context, gemm).seconds, 1);
}

std::unique_ptr<Kernel> prepare_mma(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_mma_tile(context, gemm, mma_plan(context, gemm), label);
}

std::vector<GemmTiling> mma_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, tiles_for(context.gpu(), gemm));
}

std::unique_ptr<Kernel> prepare_mma_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                           std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, tiles_for(context.gpu(), gemm), tiling);
  return plan ? prepare_mma_tile(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kMmaGemm{
    .name = "mma",
    .is_alternative_of = has_mma,
    .refusal = [](const Context&, const Gemm& gemm) { return matrix_cores_refusal(gemm); },
    .device_refusal = mma_device_refusal,
    .seconds = mma_seconds,
    .prepare = prepare_mma,
    .files = {"gemm/mma.cl"},
    .tilings = mma_tilings,
    .prepare_tiling = prepare_mma_tiling};

}  // namespace concord::opencl
