// GemmPlan: which tile and which cut of k a product should take, and the time it is expected to take with them. Used by
// every implementation that multiplies in tiles, and for what launches and memory cost by winograd and planes.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "concord/opencl/driver/gpu_model.hpp"
#include "concord/opencl/gemm/problem.hpp"

namespace concord::opencl {

/// The seconds that every further launch takes, as seen on an H200: to start, to wait for its first reads, to end.
inline constexpr double kLaunchSeconds = 8e-6;

/// A cut of k and the time that the product should take with it.
struct GemmPlan {
  std::size_t tile = 0;  // in the implementation's list
  std::int64_t parts = 1, part = 0;
  double seconds = 0;
};

/// One tile of an implementation's list: `resident` groups share a compute unit and do `products_a_second` together,
/// one alone `share` of that. Begin and end of a group take as long as `filling` more values of k.
struct GemmTile {
  std::int64_t m, n, k, resident, filling;
  double products_a_second, share;
  /// "128x64", of which a list has one.
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}", m, n); }
};
/// The tile, measured on an H200, with as many groups on a unit as its local memory has room for.
[[nodiscard]] GemmTile resident_tile(const GpuModel& gpu, GemmTile tile, std::int64_t local_bytes);

/// The tile and cut of k that should take least time: waves of groups times what a group does, and adding up the parts.
[[nodiscard]] GemmPlan gemm_plan(const GpuModel& gpu, const Gemm& gemm, const std::vector<GemmTile>& tiles);

/// What a product should take in so many launches that multiplies in that time: no less than its operands take to be
/// moved, and a launch each.
[[nodiscard]] double product_seconds(const GpuModel& gpu, const Gemm& gemm, double multiplying, int launches);
/// The same where the epilogue's operands are read once the sums are there, with nothing else to do meanwhile.
[[nodiscard]] double product_seconds_with_epilogue(const GpuModel& gpu, const Gemm& gemm, double multiplying,
                                                   int launches);

/// With the tile at `index`, k in so many parts or a few less; nothing where k is too short.
[[nodiscard]] std::optional<GemmPlan> cut_plan(const Gemm& gemm, const GemmTile& tile, std::size_t index,
                                               std::int64_t parts);

/// What a tuner should measure: each tile with cuts of k around the one that should take least time.
[[nodiscard]] std::vector<GemmTiling> tilings_to_try(const GpuModel& gpu, const Gemm& gemm,
                                                     const std::vector<GemmTile>& tiles);
/// The tile that a tiling names, cut as it says; nothing where the list has no such tile, or k no such cut.
[[nodiscard]] std::optional<GemmPlan> plan_of_tiling(const Gemm& gemm, const std::vector<GemmTile>& tiles,
                                                     const GemmTiling& tiling);

/// By one tile of the list, k in one piece, or in two where it is long.
[[nodiscard]] GemmPlan whole_plan(const Gemm& gemm, std::size_t tile);

}  // namespace concord::opencl
