// EventLog: puts the commands of a device's queues on the timeline, by the device's clock. Used by OpenClDevice.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/timeline.hpp"
#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// Nanoseconds of a command by the device's clock (CL_PROFILING_COMMAND_…). Nothing where the device does not report
/// them, or reports less than a microsecond, which is a placeholder.
[[nodiscard]] std::optional<cl_ulong> device_time(cl_event event, cl_profiling_info what);

/// One queue on the timeline: keeps events until their commands have ended.
class EventLog {
 public:
  /// `queue` must be in order and have profiling.
  EventLog(std::string_view track, cl_command_queue queue) : name_(track), track_(track), queue_(queue) {}

  /// Adds the commands of `events` as one span; null events do not count. The commands run one after the other. Several
  /// commands also get a span each inside that span. Call it after the commands were enqueued.
  void add(timeline::Label label, std::vector<NamedEvent> events, std::uint64_t bytes = 0);
  /// Adds one command; the caller keeps the event.
  void add(timeline::Label label, cl_event event, std::uint64_t bytes);
  /// Puts the commands that have ended on the timeline.
  void collect();

 private:
  struct Command {
    timeline::Label label;
    std::vector<NamedEvent> events;  // one or more
    std::uint64_t bytes;
  };
  void take(const Command& command);
  /// Warns, once per track, that the driver reports no times.
  void tell_missing();
  /// Converts a span of the device's clock to the timeline; nothing where the device does not report times.
  using Times = std::pair<timeline::Time, timeline::Time>;
  [[nodiscard]] std::optional<Times> times(cl_event first, cl_event last);
  /// The offset between the host's clock and the device's; measured once.
  [[nodiscard]] std::optional<timeline::Time> offset();

  std::string name_;
  timeline::Track track_;
  cl_command_queue queue_;
  std::deque<Command> waiting_;
  std::optional<timeline::Time> offset_;
  timeline::Time last_end_ = 0;
  bool told_missing_ = false;
};

}  // namespace concord::opencl
