// The time of a step by operator and kernel, from traced runs. compare, profile and bench use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/device_speed.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// What one row contains: all launches of one operator by one kernel, or one launch.
enum class Rows : std::uint8_t { kind, launch };

struct OperatorTime {
  std::string op, kernel;
  std::string shapes, node;  // of one launch
  std::int64_t count = 0;
  double seconds = 0;
  Cost cost;
  double floor_seconds = 0;  // the least time at the device's speed, by FLOPs or by bytes of each launch
  /// The part of the roofline's speed that is reached. Above 1 if values stay in a cache.
  [[nodiscard]] double share() const { return floor_seconds / seconds; }
};

/// Calls Program::run_traced `runs` times and returns the median of each launch.
[[nodiscard]] std::vector<TraceEntry> median_trace(Program& program, int runs);

/// Rows sorted by time, the longest first. Without `speed` the least times are 0.
[[nodiscard]] std::vector<OperatorTime> operator_times(std::span<const TraceEntry> trace, Rows rows,
                                                       const DeviceSpeed* speed = nullptr);
/// The sum of all rows.
[[nodiscard]] OperatorTime total_of(std::span<const OperatorTime> times);

}  // namespace concord
