// Plans and operands of the products on matrix units, and what NVIDIA's devices say of themselves.
#include "concord/opencl/matrix_units.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "concord/opencl/discovery.hpp"
#include "concord/opencl/patch_tables.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double result_bytes(const Gemm& gemm) { return 4.0 * static_cast<double>(gemm.m * gemm.n * gemm.batch); }

/// Of what is multiplied and the result.
double operand_bytes(const Gemm& gemm) {
  const std::int64_t right = gemm.b.is_patch ? gemm.b.elements : gemm.n * gemm.k * gemm.batch;
  return 4.0 * static_cast<double>(gemm.m * gemm.k * gemm.batch + right) + result_bytes(gemm);
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

/// Operands begin at multiples of 16 bytes, parts of them anywhere.
bool begins_in_fours(const BufferArgument& argument) { return argument.extra_bytes % (4 * sizeof(float)) == 0; }

bool matrix_in_fours(const Gemm& gemm) {
  const GemmRight& b = gemm.b;
  if (b.along_k) return in_fours({b.n, gemm.k, b.block, b.block != 0 ? b.k : 0, b.batch});
  return b.n == 1 && in_fours({b.k, gemm.n, b.batch});
}

boost::compute::buffer table_of(Context& context, const std::vector<PatchEntry>& entries) {
  // OpenCL copies the entries at once; it does not write to them.
  return {context.context(), entries.size() * sizeof(PatchEntry), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
          const_cast<PatchEntry*>(entries.data())};
}

// Of a compute unit that has so many groups to do, `resident` at a time.
double unit_seconds(const MatrixTile& tile, std::int64_t groups, std::int64_t part) {
  const auto products = static_cast<double>(tile.m * tile.n * (part + tile.filling));
  const std::int64_t full = groups / tile.resident, rest = groups % tile.resident;
  const double rest_rate = std::min(1.0, static_cast<double>(rest) * tile.share);
  double seconds = static_cast<double>(full * tile.resident) * products / tile.products_a_second;
  if (rest > 0) seconds += static_cast<double>(rest) * products / (tile.products_a_second * rest_rate);
  return seconds;
}

}  // namespace

MatrixPlan matrix_plan(const Context& context, const Gemm& gemm, const std::vector<MatrixTile>& tiles) {
  return matrix_plan(std::int64_t{context.limits().compute_units}, gemm, tiles);
}

MatrixPlan matrix_plan(std::int64_t units, const Gemm& gemm, const std::vector<MatrixTile>& tiles) {
  constexpr std::int64_t kShortestPart = 64, kMostParts = 512, kMostPartial = std::int64_t{1} << 28;
  constexpr double kCombineSeconds = 3e-6;
  const std::int64_t result = gemm.m * gemm.n * gemm.batch;
  MatrixPlan best{0, 1, gemm.k, INFINITY};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const MatrixTile& tile = tiles[i];
    const std::int64_t groups = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch;
    std::int64_t last = 0;
    for (std::int64_t wanted = 1; wanted <= kMostParts; wanted += std::max<std::int64_t>(1, wanted / 2)) {
      const std::int64_t part = divide_up(divide_up(gemm.k, wanted), tile.k) * tile.k;
      const std::int64_t parts = divide_up(gemm.k, part);
      if (parts == last) continue;
      last = parts;
      if (parts > 1 && (part < kShortestPart || parts * result * 4 > kMostPartial)) break;
      double seconds = unit_seconds(tile, divide_up(groups * parts, units), part);
      if (parts > 1) seconds += kCombineSeconds + static_cast<double>((2 * parts + 1) * result * 4) / kBytesASecond;
      if (seconds < best.seconds) best = {i, parts, parts > 1 ? part : gemm.k, seconds};
    }
  }
  return best;
}

double product_seconds(const Gemm& gemm, double multiplying, int launches) {
  constexpr double kReachedBytesASecond = 3.2e12;
  return std::max(multiplying, operand_bytes(gemm) / kReachedBytesASecond) + launches * kLaunchSeconds;
}

double product_seconds_with_epilogue(const Gemm& gemm, double multiplying, int launches) {
  constexpr double kEpilogueBytesASecond = 2.2e12;
  const auto operands = static_cast<double>(gemm.epilogue.operands());
  return product_seconds(gemm, multiplying, launches) + operands * result_bytes(gemm) / kEpilogueBytesASecond;
}

bool is_for_matrix_units(const Gemm& gemm) {
  constexpr std::int64_t kLeastProducts = 120'000'000;  // below, packing and cutting cost more than they gain
  return gemm.m * gemm.n * gemm.k * gemm.batch >= kLeastProducts;
}

std::optional<MatrixPlan> cut_plan(const Gemm& gemm, const MatrixTile& tile, std::size_t index, std::int64_t parts) {
  if (parts == 1) return MatrixPlan{index, 1, gemm.k, 0};
  if (parts < 1 || parts * tile.k > gemm.k) return std::nullopt;
  const std::int64_t part = divide_up(divide_up(gemm.k, parts), tile.k) * tile.k;
  return MatrixPlan{index, divide_up(gemm.k, part), part, 0};
}

MatrixPlan whole_plan(const Gemm& gemm, std::size_t tile) {
  constexpr std::int64_t kLong = 1024;  // a multiple of every tile's depth
  return gemm.k > kLong ? MatrixPlan{tile, 2, kLong, 0} : MatrixPlan{tile, 1, gemm.k, 0};
}

std::string_view matrix_precision(Precision precision) {
  constexpr std::array<std::string_view, 4> kDefinitions{"PRECISION=SPLIT", "PRECISION=TF32", "PRECISION=BF16",
                                                         "PRECISION=FP16"};
  return kDefinitions.at(static_cast<std::size_t>(precision));
}

bool in_fours(std::initializer_list<std::int64_t> values) {
  return std::ranges::all_of(values, [](std::int64_t value) { return value % 4 == 0; });
}

bool left_in_fours(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  if (!begins_in_fours(a.buffer)) return false;
  if (a.k == 1) return in_fours({a.row, gemm.k, a.block, a.outer, a.batch});
  return in_fours({a.k, gemm.m, a.batch});
}

RightOperand right_operand(Context& context, const Gemm& gemm) {
  RightOperand right;
  const bool begins = begins_in_fours(gemm.b.buffer);
  if (!gemm.b.is_patch) {
    right.fours = begins && matrix_in_fours(gemm);
    return right;
  }
  const PatchTables tables = patch_tables(gemm);
  right.fours = begins && patches_in_fours(gemm, tables);
  right.arguments = {table_of(context, tables.taps), table_of(context, tables.places)};
  const FastDivisor block = fast_divisor(tables.block);
  for (const std::uint32_t number : {block.divisor, block.multiplier, block.shift})
    right.arguments.emplace_back(number);
  right.arguments.emplace_back(static_cast<std::int32_t>(tables.plane));
  return right;
}

bool matrix_units_accept(const Gemm& gemm) {
  constexpr std::int64_t kLeast = 8;
  if (gemm.a.is_patch || gemm.largest > std::numeric_limits<std::int32_t>::max()) return false;
  if (gemm.m < kLeast || gemm.n < kLeast || gemm.k < kLeast) return false;
  return !gemm.b.is_patch || has_patch_tables(gemm);
}

std::size_t nvidia_local_memory(const Context& context) {
  constexpr std::size_t kKiB = 1024;
  const Capability found = capability_of(context.device());
  if (found.major == 8) return (found.minor == 0 || found.minor == 7 ? 163 : 99) * kKiB;
  if (found.major == 9 || found.major == 10) return 227 * kKiB;
  return found.major > 10 ? 99 * kKiB : context.limits().local_memory;
}

}  // namespace concord::opencl
