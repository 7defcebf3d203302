// GemmPlan: the tile and the cut of k for a matrix multiplication, and their expected time. Used by every tiled
// implementation, by the copy engine's products and by winograd.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "concord/opencl/driver/gpu_model.hpp"
#include "concord/opencl/gemm/problem.hpp"

namespace concord::opencl {

/// Seconds per additional launch, measured on an H200: its start, the latency of its first reads, and its end.
inline constexpr double kLaunchSeconds = 8e-6;

/// A tile, a cut of k, and the expected time with them.
struct GemmPlan {
  std::size_t tile = 0;  // in the implementation's list
  std::int64_t parts = 1, part = 0;
  double seconds = 0;
};

/// One tile of an implementation's list. `resident` groups share a compute unit and reach `products_a_second` together;
/// a single group reaches `share` of that. Begin and end of a group take as long as `filling` more values of k.
struct GemmTile {
  std::int64_t m, n, k, resident, filling;
  double products_a_second, share;
  /// "128x64", unique in a list.
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}", m, n); }
};
/// The tile, measured on an H200, with the number of resident groups that the GPU's local memory allows.
[[nodiscard]] GemmTile resident_tile(const GpuModel& gpu, GemmTile tile, std::int64_t local_bytes);

/// The tile and cut of k with the least expected time: waves of groups times the time of a group, plus the addition of
/// the parts.
[[nodiscard]] GemmPlan gemm_plan(const GpuModel& gpu, const Gemm& gemm, const std::vector<GemmTile>& tiles);

/// The expected time of a matrix multiplication that computes for `multiplying` seconds in `launches` launches: at
/// least the time to move its operands, plus the cost of each launch.
[[nodiscard]] double product_seconds(const GpuModel& gpu, const Gemm& gemm, double multiplying, int launches);
/// The same for kernels that read the epilogue's operands after the sums are complete, without other work to hide the
/// reads.
[[nodiscard]] double product_seconds_with_epilogue(const GpuModel& gpu, const Gemm& gemm, double multiplying,
                                                   int launches);

/// Whether the partial sums of so many parts take at most twice the memory that a plan may give them. A tuner tries
/// twice the planned number of parts; tables may ask for any.
[[nodiscard]] bool has_room_for_parts(const Gemm& gemm, std::int64_t parts);
/// The plan with the tile at `index` and k in `parts` parts or slightly fewer; nothing where k is too short, or the
/// partial sums need too much memory.
[[nodiscard]] std::optional<GemmPlan> cut_plan(const Gemm& gemm, const GemmTile& tile, std::size_t index,
                                               std::int64_t parts);

/// The tilings that a tuner should measure: each tile with cuts of k around its best expected one.
[[nodiscard]] std::vector<GemmTiling> tilings_to_try(const GpuModel& gpu, const Gemm& gemm,
                                                     const std::vector<GemmTile>& tiles);
/// The plan that a tiling names; nothing where the list has no such tile, or cut_plan gives nothing.
[[nodiscard]] std::optional<GemmPlan> plan_of_tiling(const Gemm& gemm, const std::vector<GemmTile>& tiles,
                                                     const GemmTiling& tiling);

/// The plan with one tile of the list, and k in one piece, or in two where k is long.
[[nodiscard]] GemmPlan whole_plan(const Gemm& gemm, std::size_t tile);

}  // namespace concord::opencl
