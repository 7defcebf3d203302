// Matrix multiplications with few tiles and a long k, which the slices of a work-group share
// (cl_kernels/gemm/sliced.cl): the tile, and the definitions and arguments of the kernel.
#include <fmt/format.h>

#include <optional>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/patch_tables.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kSlices = 8, kSliceDepth = 8, kItemElements = 16;  // of the result
// The rate was measured on an H200, where all slices read their next 64 values of k in 0.55 us.
constexpr GemmTile kSlicedTile{16, 32, kSlices* kSliceDepth, 4, 256, 1e11, 0.6};
constexpr std::int64_t kSliceItems = kSlicedTile.m * kSlicedTile.n / kItemElements,
                       kSlicedItems = kSlices * kSliceItems;
constexpr std::int64_t kSlicedBytes = 8 * kSlicedTile.k * (kSlicedTile.m + kSlicedTile.n + 8);

GemmTile sliced_tile(const GpuModel& gpu, const Gemm& gemm) {
  constexpr double kOfPatches = 0.6;  // of the rate, measured there too
  GemmTile tile = resident_tile(gpu, kSlicedTile, kSlicedBytes);
  tile.products_a_second *= gpu.products_a_second / kMeasuredProductsASecond * (gemm.b.is_patch ? kOfPatches : 1);
  return tile;
}

GemmPlan sliced_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, {sliced_tile(context.gpu(), gemm)});
}

std::string_view sliced_refusal(const Context& context, const Gemm&) {
  const Limits& limits = context.limits();
  return size(kSlicedItems) > limits.max_work_group || size(kSlicedBytes) > limits.local_memory
             ? "the device's work-groups or local memory are too small"
             : kNoRefusal;
}

std::unique_ptr<Kernel> prepare_sliced_plan(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                            std::string_view label) {
  RightOperand right;
  if (!gemm.b.is_patch || has_patch_tables(gemm)) right = right_operand(context, gemm);
  std::vector<std::string> definitions{
      fmt::format("TILE_M={}", kSlicedTile.m),  fmt::format("TILE_N={}", kSlicedTile.n),
      fmt::format("TILE_K={}", kSliceDepth),    fmt::format("THREADS={}", kSliceItems),
      fmt::format("SLICES={}", kSlices),        !gemm.a.is_patch && left_in_fours(gemm) ? "A_VECTOR=4" : "A_VECTOR=1",
      right.fours ? "B_VECTOR=4" : "B_VECTOR=1"};
  if (!right.arguments.empty()) definitions.emplace_back("B_TABLES");
  const std::int64_t tiles = divide_up(gemm.m, kSlicedTile.m) * divide_up(gemm.n, kSlicedTile.n);
  Stage multiply{gemm_program(context, gemm, "gemm/sliced.cl", plan.parts == 1, std::move(definitions)),
                 "gemm_sliced_multiply",
                 gemm_arguments(gemm, plan.parts, plan.part, right.arguments),
                 {size(tiles * kSlicedItems), 1, size(gemm.batch * plan.parts)},
                 {size(kSlicedItems), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} sliced", label), std::move(multiply), plan.parts);
}

double sliced_seconds(const Context& context, const Gemm& gemm) {
  return product_seconds_with_epilogue(context.gpu(), gemm, sliced_plan(context, gemm).seconds, 1);
}

std::unique_ptr<Kernel> prepare_sliced(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_sliced_plan(context, gemm, sliced_plan(context, gemm), label);
}

std::vector<GemmTiling> sliced_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, {sliced_tile(context.gpu(), gemm)});
}

std::unique_ptr<Kernel> prepare_sliced_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                              std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, {sliced_tile(context.gpu(), gemm)}, tiling);
  return plan ? prepare_sliced_plan(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kSlicedGemm{.name = "sliced",
                                            .is_alternative_of = [](const Context&) { return true; },
                                            .refusal = sliced_refusal,
                                            .device_refusal = [](Context&, Precision) { return kNoRefusal; },
                                            .seconds = sliced_seconds,
                                            .prepare = prepare_sliced,
                                            .files = {"gemm/sliced.cl"},
                                            .tilings = sliced_tilings,
                                            .prepare_tiling = prepare_sliced_tiling};

}  // namespace concord::opencl
