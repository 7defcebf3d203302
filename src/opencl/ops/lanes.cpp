// The choice of lanes a row.
#include "concord/opencl/ops/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace concord::opencl {

std::vector<std::string> Lanes::definitions() const {
  std::vector<std::string> list{fmt::format("LANES={}", lanes), fmt::format("ROWS={}", rows)};
  if (rows_adjacent) list.emplace_back("ROWS_ADJACENT");
  return list;
}

void Lanes::cover(Stage& stage, std::int64_t count) const {
  const std::size_t groups = (static_cast<std::size_t>(count) + rows - 1) / rows;
  stage.local = {lanes * rows, 1, 1};
  stage.global = {groups * lanes * rows, 1, 1};
}

// About four elements a lane; 32 neighbouring rows read whole cache lines where rows are interleaved.
Lanes lanes_for(const Context& context, std::int64_t length, std::int64_t inner, std::size_t most) {
  if (context.limits().is_cpu) return {};
  const std::size_t group = std::bit_floor(std::min(most, context.limits().max_work_group));
  const std::size_t wanted = std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(1, (length + 3) / 4)));
  Lanes lanes;
  if (inner > 1) {
    lanes.rows_adjacent = true;
    lanes.rows = std::min<std::size_t>(32, group);
    lanes.lanes = std::min(wanted, group / lanes.rows);
  } else {
    lanes.lanes = std::min(wanted, group);
    lanes.rows = std::max<std::size_t>(1, std::min<std::size_t>(64, group) / lanes.lanes);
  }
  return lanes;
}

}  // namespace concord::opencl
