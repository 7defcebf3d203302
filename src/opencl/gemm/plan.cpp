// The expected time of tiles, cuts of k, launches and operands.
#include "concord/opencl/gemm/plan.hpp"

#include <algorithm>
#include <cmath>

#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kMostPartial = std::int64_t{1} << 28;  // bytes of the partial sums of a plan

double bytes_of(std::int64_t elements, bool has_16_bits) {
  return (has_16_bits ? 2.0 : 4.0) * static_cast<double>(elements);
}

double result_bytes(const Gemm& gemm) { return bytes_of(gemm.m * gemm.n * gemm.batch, gemm.c.is_channels_last); }

/// Bytes of the two factors and the result.
double operand_bytes(const Gemm& gemm) {
  const std::int64_t right = gemm.b.is_patch ? gemm.b.elements : gemm.n * gemm.k * gemm.batch;
  return bytes_of(gemm.m * gemm.k * gemm.batch, gemm.a.has_16_bits()) + bytes_of(right, gemm.b.is_channels_last) +
         result_bytes(gemm);
}

// Time of a compute unit that runs `groups` groups, `resident` at a time.
double unit_seconds(const GemmTile& tile, std::int64_t groups, std::int64_t part) {
  const auto products = static_cast<double>(tile.m * tile.n * (part + tile.filling));
  const std::int64_t full = groups / tile.resident, rest = groups % tile.resident;
  const double rest_rate = std::min(1.0, static_cast<double>(rest) * tile.share);
  double seconds = static_cast<double>(full * tile.resident) * products / tile.products_a_second;
  if (rest > 0) seconds += static_cast<double>(rest) * products / (tile.products_a_second * rest_rate);
  return seconds;
}

}  // namespace

GemmTile resident_tile(const GpuModel& gpu, GemmTile tile, std::int64_t local_bytes) {
  if (gpu.local_memory >= kMeasuredLocalMemory) return tile;
  tile.resident = std::clamp<std::int64_t>(gpu.local_memory / local_bytes, 1, tile.resident);
  const double reached = std::min(1.0, static_cast<double>(tile.resident) * tile.share);
  tile.products_a_second *= reached;
  tile.share /= reached;
  return tile;
}

GemmPlan gemm_plan(const GpuModel& gpu, const Gemm& gemm, const std::vector<GemmTile>& tiles) {
  constexpr std::int64_t kShortestPart = 64, kMostParts = 512;
  constexpr double kCombineSeconds = 5e-6;  // of the launch that adds up parts: the host alone takes 4.3 us on an H200
  const std::int64_t result = gemm.m * gemm.n * gemm.batch;
  GemmPlan best{0, 1, gemm.k, INFINITY};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const GemmTile& tile = tiles[i];
    const std::int64_t groups = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch;
    std::int64_t last = 0;
    for (std::int64_t wanted = 1; wanted <= kMostParts; wanted += std::max<std::int64_t>(1, wanted / 2)) {
      const std::int64_t part = divide_up(divide_up(gemm.k, wanted), tile.k) * tile.k;
      const std::int64_t parts = divide_up(gemm.k, part);
      if (parts == last) continue;
      last = parts;
      if (parts > 1 && (part < kShortestPart || parts * result * 4 > kMostPartial)) break;
      double seconds = unit_seconds(tile, divide_up(groups * parts, gpu.units), part);
      if (parts > 1) {
        seconds += kCombineSeconds + static_cast<double>((2 * parts + 1) * result * 4) / gpu.bytes_a_second;
      }
      if (seconds < best.seconds) best = {i, parts, parts > 1 ? part : gemm.k, seconds};
    }
  }
  return best;
}

double product_seconds(const GpuModel& gpu, const Gemm& gemm, double multiplying, int launches) {
  constexpr double kReached = 0.8;  // of the memory's bandwidth
  return std::max(multiplying, operand_bytes(gemm) / (kReached * gpu.bytes_a_second)) + launches * kLaunchSeconds;
}

double product_seconds_with_epilogue(const GpuModel& gpu, const Gemm& gemm, double multiplying, int launches) {
  constexpr double kReached = 0.55;  // without other work to hide the reads
  const auto operands = static_cast<double>(gemm.epilogue.whole_operands);
  return product_seconds(gpu, gemm, multiplying, launches) +
         operands * result_bytes(gemm) / (kReached * gpu.bytes_a_second);
}

bool has_room_for_parts(const Gemm& gemm, std::int64_t parts) {
  const std::int64_t result = std::max<std::int64_t>(gemm.m * gemm.n * gemm.batch, 1);
  return parts == 1 || parts <= 2 * kMostPartial / 4 / result;
}

std::optional<GemmPlan> cut_plan(const Gemm& gemm, const GemmTile& tile, std::size_t index, std::int64_t parts) {
  if (parts == 1) return GemmPlan{index, 1, gemm.k, 0};
  if (parts < 1 || parts > gemm.k / tile.k || !has_room_for_parts(gemm, parts)) return std::nullopt;
  const std::int64_t part = divide_up(divide_up(gemm.k, parts), tile.k) * tile.k;
  return GemmPlan{index, divide_up(gemm.k, part), part, 0};
}

std::vector<GemmTiling> tilings_to_try(const GpuModel& gpu, const Gemm& gemm, const std::vector<GemmTile>& tiles) {
  std::vector<GemmTiling> list;
  for (const GemmTile& tile : tiles) {
    for (const std::int64_t parts : parts_around(gemm_plan(gpu, gemm, {tile}).parts)) {
      if (cut_plan(gemm, tile, 0, parts)) list.push_back({tile.name(), parts});
    }
  }
  return list;
}

std::optional<GemmPlan> plan_of_tiling(const Gemm& gemm, const std::vector<GemmTile>& tiles, const GemmTiling& tiling) {
  const auto named = std::ranges::find(tiles, tiling.tile, &GemmTile::name);
  if (named == tiles.end()) return std::nullopt;
  return cut_plan(gemm, *named, static_cast<std::size_t>(named - tiles.begin()), tiling.parts);
}

GemmPlan whole_plan(const Gemm& gemm, std::size_t tile) {
  constexpr std::int64_t kLong = 1024;  // a multiple of every tile's depth
  return gemm.k > kLong ? GemmPlan{tile, 2, kLong, 0} : GemmPlan{tile, 1, gemm.k, 0};
}

}  // namespace concord::opencl
