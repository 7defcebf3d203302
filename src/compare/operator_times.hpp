// The time of a step by operator and kernel, from traced runs: for compare, profile and bench.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/device_speed.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// What one row stands for: all launches of one operator by one kernel, or one launch.
enum class Rows : std::uint8_t { kind, launch };

struct OperatorTime {
  std::string op, kernel;
  std::string shapes, node;  // of a launch
  std::int64_t count = 0;
  double seconds = 0;
  Cost cost;
  double floor_seconds = 0;  // the least time at the device's speed: each launch by its FLOPs or its bytes
  /// Of the roofline; above 1 where values lie in a cache.
  [[nodiscard]] double share() const { return floor_seconds / seconds; }
};

/// Program::run_traced several times; the median of each launch.
[[nodiscard]] std::vector<TraceEntry> median_trace(Program& program, int runs);

/// Rows by time, the longest first. Without a speed floors are 0.
[[nodiscard]] std::vector<OperatorTime> operator_times(std::span<const TraceEntry> trace, Rows rows,
                                                       const DeviceSpeed* speed = nullptr);
/// Their sum.
[[nodiscard]] OperatorTime total_of(std::span<const OperatorTime> times);

}  // namespace concord
