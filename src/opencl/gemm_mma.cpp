// Products on the matrix units of NVIDIA GPUs (cl_kernels/nvidia/gemm_mma.cl): which products they take, the tiles, and
// the check that a device computes right with them before they are used.
#include <CL/cl_ext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/opencl/buffer.hpp"
#include "concord/opencl/gemm.hpp"
#include "concord/opencl/patch_tables.hpp"
#include "concord/opencl/status.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// `resident` groups share a compute unit; `rate` is the speed of a unit filled with them, beside the fastest tile's.
struct MmaTile {
  std::int64_t m, n, k, warp_m, warp_n, stages, resident;
  double rate;
  [[nodiscard]] std::int64_t threads() const { return m / warp_m * (n / warp_n) * 32; }
};
constexpr std::array<MmaTile, 4> kTiles{{{128, 128, 16, 64, 32, 4, 1, 1.0},
                                         {128, 64, 16, 64, 32, 4, 2, 0.95},
                                         {64, 128, 16, 64, 32, 4, 2, 0.95},
                                         {64, 64, 16, 32, 32, 4, 3, 0.8}}};
constexpr std::int64_t kBand = 16;

struct MmaPlan {
  MmaTile tile;
  std::int64_t parts = 1, part = 0;  // of k
};

// The tile and cut of k that should take least time: waves of groups times what a group does, and the second pass. Counted
// in products of one compute unit, of which it does about 2.6e11 a second; memory moves 4e12 bytes a second.
MmaPlan plan_of(const Context& context, const Gemm& gemm) {
  constexpr double kProductsASecond = 2.6e11, kBytesASecond = 4e12, kLaunch = 3e-6;
  constexpr std::int64_t kShortestPart = 64, kMostParts = 128, kFilling = 64, kMostPartial = std::int64_t{1} << 28;
  const std::int64_t units = context.limits().compute_units, result = gemm.m * gemm.n * gemm.batch;
  MmaPlan best{kTiles[0], 1, gemm.k};
  double least = INFINITY;
  for (const MmaTile& tile : kTiles) {
    const std::int64_t groups = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch;
    std::int64_t last = 0;
    for (std::int64_t wanted = 1; wanted <= kMostParts; wanted += std::max<std::int64_t>(1, wanted / 2)) {
      const std::int64_t part = divide_up(divide_up(gemm.k, wanted), tile.k) * tile.k;
      const std::int64_t parts = divide_up(gemm.k, part);
      if (parts == last) continue;
      last = parts;
      if (parts > 1 && (part < kShortestPart || parts * result * 4 > kMostPartial)) break;
      const double waves = static_cast<double>(divide_up(groups * parts, units * tile.resident));
      double cost = waves * static_cast<double>(tile.resident * tile.m * tile.n * (part + kFilling)) / tile.rate;
      if (parts > 1) {
        cost += kProductsASecond * (kLaunch + static_cast<double>((2 * parts + 1) * result * 4) / kBytesASecond);
      }
      if (cost < least) {
        least = cost;
        best = {tile, parts, parts > 1 ? part : gemm.k};
      }
    }
  }
  return best;
}

bool in_fours(std::initializer_list<std::int64_t> values) {
  return std::ranges::all_of(values, [](std::int64_t value) { return value % 4 == 0; });
}

// Whether four neighbours of an operand are adjacent in memory, aligned, and in range together.
bool left_in_fours(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  if (a.k == 1) return in_fours({a.row, gemm.k, a.block, a.outer, a.batch});
  return in_fours({a.k, gemm.m, a.batch});
}
bool right_in_fours(const Gemm& gemm) {
  const GemmRight& b = gemm.b;
  if (b.along_k) return in_fours({b.n, gemm.k, b.block, b.block != 0 ? b.k : 0, b.batch});
  return b.n == 1 && in_fours({b.k, gemm.n, b.batch});
}
bool patches_in_fours(const Gemm& gemm, const PatchTables& tables) {
  if (!in_fours({gemm.b.along_k ? gemm.k : gemm.n, gemm.b.batch, tables.block, tables.plane})) return false;
  const std::int32_t all = tables.taps.front()[1];
  for (std::size_t i = 0; i < tables.places.size(); ++i) {
    const PatchEntry& place = tables.places[i];
    const bool follows = i % 4 == 0 ? place[0] % 4 == 0 : place[0] == tables.places[i - 1][0] + 1;
    if (!follows || (place[1] & all) != all) return false;
  }
  return std::ranges::all_of(tables.taps, [&](const PatchEntry& tap) { return tap[0] % 4 == 0 && tap[1] == all; });
}
bool result_in_pairs(const Gemm& gemm, std::int64_t parts) {
  const GemmResult& c = gemm.c;
  if (gemm.n % 2 != 0) return false;
  return parts > 1 || (c.row % 2 == 0 && c.batch % 2 == 0 && c.block % 2 == 0 && c.outer % 2 == 0);
}

boost::compute::buffer table_of(Context& context, const std::vector<PatchEntry>& entries) {
  // OpenCL copies the entries at once; it does not write to them.
  return {context.context(), entries.size() * sizeof(PatchEntry), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
          const_cast<PatchEntry*>(entries.data())};
}

Stage mma_stage(Context& context, const Gemm& gemm, const MmaPlan& plan) {
  const MmaTile& tile = plan.tile;
  std::vector<Argument> extra;
  bool right_fours = false;
  if (gemm.b.is_patch) {
    const PatchTables tables = patch_tables(gemm).value();
    right_fours = patches_in_fours(gemm, tables);
    extra.emplace_back(table_of(context, tables.taps));
    extra.emplace_back(table_of(context, tables.places));
    const FastDivisor block = fast_divisor(tables.block);
    for (const std::uint32_t number : {block.divisor, block.multiplier, block.shift}) extra.emplace_back(number);
    extra.emplace_back(static_cast<std::int32_t>(tables.plane));
  } else {
    right_fours = right_in_fours(gemm);
  }
  std::vector<std::string> definitions;
  const auto define = [&](std::string_view name, std::int64_t value) {
    definitions.push_back(fmt::format("{}={}", name, value));
  };
  define("TILE_M", tile.m);
  define("TILE_N", tile.n);
  define("TILE_K", tile.k);
  define("WARP_M", tile.warp_m);
  define("WARP_N", tile.warp_n);
  define("THREADS", tile.threads());
  define("STAGES", tile.stages);
  define("BAND", kBand);
  define("A_VECTOR", left_in_fours(gemm) ? 4 : 1);
  define("B_VECTOR", right_fours ? 4 : 1);
  definitions.emplace_back("PRECISION=SPLIT");
  if (result_in_pairs(gemm, plan.parts)) definitions.emplace_back("C_PAIRS");
  const std::int64_t tiles = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n);
  return {gemm_program(context, gemm, "nvidia/gemm_mma.cl", plan.parts == 1, std::move(definitions)),
          "gemm_mma_multiply",
          gemm_arguments(gemm, plan.parts, plan.part, extra),
          {size(tiles * tile.threads()), 1, size(gemm.batch * plan.parts)},
          {size(tile.threads()), 1, 1}};
}

bool has_instructions(const Context& context) {
  cl_uint major = 0;
  return context.limits().is_nvidia && clGetDeviceInfo(context.device().id(), CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV,
                                                       sizeof major, &major, nullptr) == CL_SUCCESS &&
         major >= 8;
}

// A product of small whole numbers, which every precision computes exactly.
bool computes_right(Context& context) {
  constexpr std::int64_t kSize = 64;
  Gemm gemm;
  gemm.m = gemm.n = gemm.k = kSize;
  gemm.a.row = gemm.b.k = gemm.c.row = kSize;
  gemm.largest = kSize * kSize;
  std::vector<float> a(size(kSize * kSize)), b(a.size()), expected(a.size()), c(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i * 7 % 11) - 5;
    b[i] = static_cast<float>(i * 5 % 13) - 6;
  }
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t k = 0; k < kSize; ++k) expected[i] += a[i / kSize * kSize + k] * b[k * kSize + i % kSize];
  }
  const StagedKernel kernel(context, "matrix units", {mma_stage(context, gemm, {kTiles.back(), 1, kSize})});
  const std::size_t bytes = a.size() * sizeof(float);
  const auto accounting = std::make_shared<Accounting>();
  const auto buffer_of = [&](std::vector<float>& values) {
    cl_int status = CL_SUCCESS;
    MemoryHandle memory(
        clCreateBuffer(context.context().get(), CL_MEM_COPY_HOST_PTR, bytes, values.data(), &status));
    check(status, "clCreateBuffer", context.name());
    return std::make_unique<OpenClBuffer>(std::move(memory), bytes, accounting);
  };
  const auto left = buffer_of(a), right = buffer_of(b), result = buffer_of(c);
  const std::array<Operand, 2> inputs{{{left.get(), 0}, {right.get(), 0}}};
  const std::array<Operand, 1> outputs{{{result.get(), 0}}};
  kernel.bind(inputs, outputs, {})->enqueue();
  check(clEnqueueReadBuffer(context.queue().get(), result->memory(), CL_TRUE, 0, bytes, c.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer", context.name());
  return c == expected;
}

}  // namespace

bool mma_suits(Context& context) {
  return context.remembered("NVIDIA matrix units", [&] {
    if (environment("CONCORD_PORTABLE").value_or("0") != "0" || !has_instructions(context)) return false;
    try {
      if (computes_right(context)) return true;
      log(LogLevel::warning, fmt::format("{}: the matrix units give wrong products; not used", context.name()));
    } catch (const std::exception& error) {
      log(LogLevel::warning, fmt::format("{}: the matrix units are not used: {}", context.name(), error.what()));
    }
    return false;
  });
}

bool mma_accepts(const Context&, const Gemm& gemm) {
  constexpr std::int64_t kLeast = 8;
  if (gemm.a.is_patch || gemm.largest > std::numeric_limits<std::int32_t>::max()) return false;
  if (gemm.m < kLeast || gemm.n < kLeast || gemm.k < kLeast) return false;
  return !gemm.b.is_patch || patch_tables(gemm).has_value();
}

std::unique_ptr<Kernel> prepare_mma(Context& context, const Gemm& gemm, std::string_view label) {
  const MmaPlan plan = plan_of(context, gemm);
  return gemm_staged(context, gemm, fmt::format("{} mma {}x{}", label, plan.tile.m, plan.tile.n),
                     mma_stage(context, gemm, plan), plan.parts);
}

}  // namespace concord::opencl
