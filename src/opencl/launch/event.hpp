// OpenClEvent: a point in the work of a queue. Used by OpenClDevice and by PeerMemory.
#pragma once

#include <memory>
#include <utility>

#include "concord/device/device.hpp"
#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/driver/status.hpp"

namespace concord::opencl {

class OpenClEvent final : public Event {
 public:
  OpenClEvent(cl_event raw, std::shared_ptr<const Device> device) : OpenClEvent(EventHandle(raw), std::move(device)) {}
  OpenClEvent(EventHandle event, std::shared_ptr<const Device> device)
      : event_(std::move(event)), device_(std::move(device)) {}
  void wait() override {
    device_->require_own_process();
    const cl_event raw = event_.get();
    check(clWaitForEvents(1, &raw), "clWaitForEvents", device_->info().name);
  }
  [[nodiscard]] bool is_reached() override {
    device_->require_own_process();
    cl_int status = CL_QUEUED;
    check(clGetEventInfo(event_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
          "clGetEventInfo", device_->info().name);
    return status <= CL_COMPLETE;  // below: it failed
  }
  [[nodiscard]] cl_event raw() const { return event_.get(); }

 private:
  EventHandle event_;
  std::shared_ptr<const Device> device_;
};

[[nodiscard]] inline cl_event raw_of(const EventPtr& event) { return static_cast<const OpenClEvent&>(*event).raw(); }

}  // namespace concord::opencl
