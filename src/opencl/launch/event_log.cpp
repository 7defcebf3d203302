// EventLog: profiling events become spans.
#include "concord/opencl/launch/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "concord/core/log.hpp"

namespace concord::opencl {
namespace {

/// CL_COMPLETE when the command is complete, a greater value while it is not, a smaller one when it failed or the
/// device does not report its status. A wait for the queue reports the error.
cl_int status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int error = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return error == CL_SUCCESS ? status : error;
}

}  // namespace

// Mesa's rusticl 22.3 reports 0 to 3 nanoseconds for every command and profiling event. The clock of a real device has
// run for longer.
std::optional<cl_ulong> device_time(cl_event event, cl_profiling_info what) {
  constexpr cl_ulong kPlaceholders = 1000;
  cl_ulong time = 0;
  if (clGetEventProfilingInfo(event, what, sizeof time, &time, nullptr) != CL_SUCCESS) return std::nullopt;
  return time < kPlaceholders ? std::nullopt : std::optional(time);
}

void EventLog::add(timeline::Label label, std::vector<NamedEvent> events, std::uint64_t bytes) {
  std::erase_if(events, [](const NamedEvent& one) { return one.event.get() == nullptr; });
  if (events.empty()) return;
  waiting_.push_back({label, std::move(events), bytes});
  collect();
}

void EventLog::add(timeline::Label label, cl_event event, std::uint64_t bytes) {
  clRetainEvent(event);
  std::vector<NamedEvent> events;
  events.push_back({EventHandle(event), {}});
  add(label, std::move(events), bytes);
}

void EventLog::collect() {
  while (!waiting_.empty() && status_of(waiting_.front().events.back().event.get()) <= CL_COMPLETE) {
    take(waiting_.front());
    waiting_.pop_front();
  }
}

// Commands of an in-order queue overlap only within the resolution of the device's clock.
std::optional<EventLog::Times> EventLog::times(cl_event first, cl_event last) {
  const auto begin = device_time(first, CL_PROFILING_COMMAND_START);
  const auto end = device_time(last, CL_PROFILING_COMMAND_END);
  if (!begin || !end) {
    if (status_of(first) == CL_COMPLETE && status_of(last) == CL_COMPLETE) tell_missing();
    return std::nullopt;
  }
  const std::optional<timeline::Time> shift = offset();
  if (!shift) return std::nullopt;
  const timeline::Time from = std::max(static_cast<timeline::Time>(*begin) + *shift, last_end_);
  return Times{from, std::max(static_cast<timeline::Time>(*end) + *shift, from)};
}

void EventLog::take(const Command& command) {
  const std::optional<Times> all = times(command.events.front().event.get(), command.events.back().event.get());
  if (!all) return;
  timeline::add(track_, command.label, all->first, all->second, command.bytes);
  if (command.events.size() > 1) {
    for (const auto& [event, name] : command.events) {
      const std::optional<Times> one = times(event.get(), event.get());
      if (!one) continue;
      timeline::add(track_, timeline::label(name), one->first, std::min(one->second, all->second));
      last_end_ = one->second;
    }
  }
  last_end_ = all->second;
}

void EventLog::tell_missing() {
  if (std::exchange(told_missing_, true)) return;
  log(LogLevel::warning, fmt::format("the driver reports no times: the timeline has no {}", name_));
}

// Reads the host's clock before and after it enqueues a marker. Of several markers, the one with the shortest interval
// counts.
std::optional<timeline::Time> EventLog::offset() {
  if (offset_) return offset_;
  constexpr int kMarkers = 16;
  timeline::Time least = std::numeric_limits<timeline::Time>::max();
  for (int i = 0; i < kMarkers; ++i) {
    cl_event marker = nullptr;
    const timeline::Time before = timeline::now();
    if (clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &marker) != CL_SUCCESS) break;
    const timeline::Time between = timeline::now() - before;
    const EventHandle event(marker);
    if (clWaitForEvents(1, &marker) != CL_SUCCESS) break;
    auto queued = device_time(marker, CL_PROFILING_COMMAND_QUEUED);
    // Intel's runtime for CPUs reports 0 for a marker.
    if (!queued) queued = device_time(marker, CL_PROFILING_COMMAND_SUBMIT);
    if (!queued || between >= least) continue;
    least = between;
    offset_ = before + between / 2 - static_cast<timeline::Time>(*queued);
  }
  return offset_;
}

}  // namespace concord::opencl
