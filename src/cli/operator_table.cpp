// The table of the operators of a step.
#include "concord/cli/operator_table.hpp"

#include <fmt/format.h>

#include "concord/cli/command.hpp"

namespace concord::cli {
namespace {

/// Cuts out the middle of a long text. One update of all parameters has a shape for each of them; --json prints them
/// all.
std::string shortened(const std::string& shapes) {
  constexpr std::size_t kMost = 100, kEnd = 30;
  if (shapes.size() <= kMost) return shapes;
  return shapes.substr(0, kMost - kEnd - 3) + "..." + shapes.substr(shapes.size() - kEnd);
}

std::vector<std::string> cells_of(const OperatorTime& time, double total, Rows rows, bool with_share) {
  std::vector<std::string> cells{time.op,
                                 time.kernel,
                                 fmt::format("{}", time.count),
                                 fmt::format("{:.1f}", time.seconds * 1e6),
                                 fmt::format("{:.1f}%", 100 * time.seconds / total),
                                 fmt::format("{:.1f}", time.cost.flops / time.seconds / 1e9),
                                 fmt::format("{:.1f}", time.cost.bytes / time.seconds / 1e9)};
  if (with_share) cells.push_back(fmt::format("{:.0f}%", 100 * time.share()));
  if (rows == Rows::launch) cells.insert(cells.end(), {shortened(time.shapes), time.node});
  return cells;
}

}  // namespace

std::string operator_table(std::span<const OperatorTime> times, Rows rows, const DeviceSpeed* speed) {
  const OperatorTime total = total_of(times);
  std::vector<std::vector<std::string>> cells{{"operator", "kernel", "count", "us", "share", "GFLOP/s", "GB/s"}};
  if (speed != nullptr) cells[0].emplace_back("roofline");
  if (rows == Rows::launch) cells[0].insert(cells[0].end(), {"shapes", "node"});
  for (const OperatorTime& time : times) cells.push_back(cells_of(time, total.seconds, rows, speed != nullptr));
  cells.push_back(cells_of(total, total.seconds, rows, speed != nullptr));
  return table(cells);
}

}  // namespace concord::cli
