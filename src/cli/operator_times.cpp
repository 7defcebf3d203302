// Rows of operators with their times, and their table.
#include "operator_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "command.hpp"

namespace concord::cli {
namespace {

double floor_of(const Cost& cost, const DeviceSpeed* speed) {
  if (speed == nullptr) return 0;
  return std::max(cost.flops / speed->flops_per_second, cost.bytes / speed->bytes_per_second);
}

void add(OperatorTime& sum, const OperatorTime& part) {
  sum.count += part.count;
  sum.seconds += part.seconds;
  sum.cost.flops += part.cost.flops;
  sum.cost.bytes += part.cost.bytes;
  sum.floor_seconds += part.floor_seconds;
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
  if (rows == Rows::launch) cells.insert(cells.end(), {time.shapes, time.node});
  return cells;
}

}  // namespace

std::vector<TraceEntry> median_trace(Program& program, int runs) {
  std::vector<std::vector<TraceEntry>> traces;
  for (int i = 0; i < runs; ++i) traces.push_back(program.run_traced());
  std::vector<TraceEntry> result = traces.front();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<double> seconds;
    for (const std::vector<TraceEntry>& trace : traces) seconds.push_back(trace[i].seconds);
    std::ranges::sort(seconds);
    result[i].seconds = seconds[seconds.size() / 2];
  }
  return result;
}

std::vector<OperatorTime> operator_times(std::span<const TraceEntry> trace, Rows rows, const DeviceSpeed* speed) {
  std::vector<OperatorTime> times;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const TraceEntry& entry : trace) {
    const bool is_launch = rows == Rows::launch;
    const OperatorTime one{entry.op,      entry.kernel, is_launch ? entry.shapes : "", is_launch ? entry.node : "", 1,
                           entry.seconds, entry.cost,   floor_of(entry.cost, speed)};
    const auto [place, is_new] = places.try_emplace({entry.op, entry.kernel}, times.size());
    if (is_launch || is_new) {
      times.push_back(one);
    } else {
      add(times[place->second], one);
    }
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &OperatorTime::seconds);
  return times;
}

OperatorTime total_of(std::span<const OperatorTime> times) {
  OperatorTime total;
  total.op = "total";
  for (const OperatorTime& time : times) add(total, time);
  return total;
}

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
