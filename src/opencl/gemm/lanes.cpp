// Small matrix multiplications of rows along k, whose neighbouring items read neighbouring values of k
// (cl_kernels/gemm/lanes.cl): the tile, and the definitions and arguments of the kernel.
#include <fmt/format.h>

#include <optional>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// Each set of 32 items, a warp on NVIDIA's GPUs, owns this much of the result.
constexpr std::int64_t kWarpRows = 4, kWarpColumns = 8, kWarpItems = kWarpRows * kWarpColumns;
constexpr std::int64_t kGroupWarps = 4, kGroupItems = kGroupWarps * kWarpItems;
constexpr std::int64_t kExchangeBytes = 4 * kGroupItems * (kWarpItems + 1);
// Of a work-group. The rate was measured on an H200: reads of 128 values of k take 0.6 us, however few the groups are.
constexpr GemmTile kLanesTile{kGroupWarps * kWarpRows, kWarpColumns, 4 * kWarpItems, 4, 512, 1.1e11, 0.25};

GemmTile lanes_tile(const GpuModel& gpu) {
  GemmTile tile = resident_tile(gpu, kLanesTile, kExchangeBytes);
  tile.products_a_second *= gpu.products_a_second / kMeasuredProductsASecond;
  return tile;
}

GemmPlan lanes_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, {lanes_tile(context.gpu())});
}

std::string_view lanes_refusal(const Context& context, const Gemm& gemm) {
  if (size(kGroupItems) > context.limits().max_work_group || size(kExchangeBytes) > context.limits().local_memory) {
    return "the device's work-groups or local memory are too small";
  }
  const bool are_along_k = !gemm.a.is_patch && !gemm.b.is_patch && gemm.a.k == 1 && gemm.b.along_k;
  return are_along_k && left_in_fours(gemm) && right_in_fours(gemm) ? kNoRefusal
                                                                    : "an operand cannot be read by fours along k";
}

std::unique_ptr<Kernel> prepare_lanes_plan(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                           std::string_view label) {
  const std::int64_t blocks = divide_up(gemm.m, kWarpRows) * divide_up(gemm.n, kWarpColumns);
  Stage multiply{gemm_program(context, gemm, "gemm/lanes.cl", plan.parts == 1, {fmt::format("WARPS={}", kGroupWarps)}),
                 "gemm_lanes_multiply",
                 gemm_arguments(gemm, plan.parts, plan.part),
                 {size(divide_up(blocks, kGroupWarps) * kGroupItems), 1, size(gemm.batch * plan.parts)},
                 {size(kGroupItems), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} lanes", label), std::move(multiply), plan.parts);
}

double lanes_seconds(const Context& context, const Gemm& gemm) {
  return product_seconds_with_epilogue(context.gpu(), gemm, lanes_plan(context, gemm).seconds, 1);
}

std::unique_ptr<Kernel> prepare_lanes(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_lanes_plan(context, gemm, lanes_plan(context, gemm), label);
}

std::vector<GemmTiling> lanes_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, {lanes_tile(context.gpu())});
}

std::unique_ptr<Kernel> prepare_lanes_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                             std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, {lanes_tile(context.gpu())}, tiling);
  return plan ? prepare_lanes_plan(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kLanesGemm{.name = "lanes",
                                           .is_alternative_of = [](const Context&) { return true; },
                                           .refusal = lanes_refusal,
                                           .device_refusal = [](Context&, Precision) { return kNoRefusal; },
                                           .seconds = lanes_seconds,
                                           .prepare = prepare_lanes,
                                           .files = {"gemm/lanes.cl"},
                                           .tilings = lanes_tilings,
                                           .prepare_tiling = prepare_lanes_tiling};

}  // namespace concord::opencl
