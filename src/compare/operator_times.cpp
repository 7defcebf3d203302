// Rows of operators with their times.
#include "concord/compare/operator_times.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "concord/core/median.hpp"

namespace concord {
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

}  // namespace

std::vector<TraceEntry> median_trace(Program& program, int runs) {
  std::vector<std::vector<TraceEntry>> traces;
  for (int i = 0; i < runs; ++i) traces.push_back(program.run_traced());
  std::vector<TraceEntry> result = traces.front();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<double> seconds;
    for (const std::vector<TraceEntry>& trace : traces) seconds.push_back(trace[i].seconds);
    result[i].seconds = median(seconds);
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

}  // namespace concord
