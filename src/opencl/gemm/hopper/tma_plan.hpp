// The tiles of gemm/hopper/tma.cl, and which of them a product takes, with k in how many parts. Used by the launches
// (tma_launch.hpp) and by the implementations (tma.cpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/opencl/gemm/hopper/split_operands.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

struct TmaTile {
  std::int64_t q, row_bytes, stages, staged_q, resident, filling;
  double teraflops;                // of one product; measured on an H200, as the next member
  double ending_microseconds = 0;  // from the last sum to the next tile, where the result lies channels-last
  static constexpr std::int64_t kWarpgroups = 2, kTmaRows = 64 * kWarpgroups;
  [[nodiscard]] std::int64_t depth(const PlaneNumbers& numbers) const { return row_bytes / numbers.bytes(); }
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}, {} bytes", q, kTmaRows, row_bytes); }
};
[[nodiscard]] std::span<const TmaTile> tma_tiles(const Gemm& gemm);

/// A tile, the cut of k in tiles, and the expected time of the multiplication.
struct TmaPlan {
  TmaTile tile;
  std::int64_t parts, part_tiles;
  double seconds;
  std::int64_t most_groups = std::numeric_limits<std::int64_t>::max();  // of the launch; fewer only in checks
};

/// The cut of k with the least expected time for a tile; nothing where filters are not padded to whole tiles of its
/// depth.
[[nodiscard]] std::optional<TmaPlan> tma_plan_with(const Context& context, const Gemm& gemm, const TmaTile& tile);
/// The plan with the fastest tile: the time to move and pack operands is the same for all tiles.
[[nodiscard]] TmaPlan tma_plan(const Context& context, const Gemm& gemm);
/// The plan with k in `parts` parts or slightly fewer; nothing where k is too short or the tile does not suit.
[[nodiscard]] std::optional<TmaPlan> tma_cut_plan(const Gemm& gemm, const TmaTile& tile, std::int64_t parts);
/// Plans with one tile for products of one launch, all of whose works take about the same time; empty where a product
/// fills the device alone, so that it gains nothing from the others.
[[nodiscard]] std::vector<TmaPlan> tma_plans_together(const Context& context, std::span<const Gemm> products);

/// What tma_plans_together expects of one product in a launch of its own.
[[nodiscard]] double seconds_of_one(const Context& context, const Gemm& gemm);
/// Whether a launch of so many works can add up the parts of k, too. Its groups wait for each other, so all must be on
/// the device at once, also beside a kernel that waits for another device.
[[nodiscard]] bool can_join_parts(const Context& context, std::int64_t works);

}  // namespace concord::opencl
