// EventLog: puts the commands of a device's queues on the timeline, by the device's clock. Used by OpenClDevice.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/timeline.hpp"
#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// Nanoseconds of a command by the device's clock (CL_PROFILING_COMMAND_…); nothing where the device does not say,
/// or says less than a microsecond, which is a placeholder.
[[nodiscard]] std::optional<cl_ulong> device_time(cl_event event, cl_profiling_info what);

/// One queue on the timeline: keeps events until their commands have ended.
class EventLog {
 public:
  /// `queue` in order, with profiling.
  EventLog(std::string_view track, cl_command_queue queue) : name_(track), track_(track), queue_(queue) {}

  /// The commands of `events` (null ones do not count), one after the other, as one span; of several, each in a span of
  /// its own inside. Call after they were enqueued.
  void add(timeline::Label label, std::vector<NamedEvent> events, std::uint64_t bytes = 0);
  /// One command, whose event stays the caller's.
  void add(timeline::Label label, cl_event event, std::uint64_t bytes);
  /// Puts on the timeline what has ended.
  void collect();

 private:
  struct Command {
    timeline::Label label;
    std::vector<NamedEvent> events;  // one or more
    std::uint64_t bytes;
  };
  void take(const Command& command);
  /// Says, once a track, that the driver tells no times.
  void tell_missing();
  /// A span of the device's clock on the timeline; nothing where the device does not say.
  using Times = std::pair<timeline::Time, timeline::Time>;
  [[nodiscard]] std::optional<Times> times(cl_event first, cl_event last);
  /// What to add to the device's clock for the host's; measured once.
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
