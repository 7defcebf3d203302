// Handle: sole owner of a raw OpenCL object. The destructor releases the object, with two exceptions: while the process
// ends, because a driver may already be unloaded, and in a forked child, which has none of the driver's threads.
#pragma once

#include <CL/cl.h>

#include <string>
#include <utility>

namespace concord::opencl {

/// Whether calls of the driver are no longer allowed: from the destruction of static objects that are older than the
/// first use of OpenCL, and in a child of the process that used OpenCL first.
[[nodiscard]] bool driver_is_gone();
/// Whether this process is such a child. Call it before the first call of OpenCL in every process.
[[nodiscard]] bool driver_is_inherited();

template <class Raw, cl_int(CL_API_CALL* release)(Raw)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Raw raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_ != nullptr && !driver_is_gone()) release(raw_);
  }
  [[nodiscard]] Raw get() const { return raw_; }

 private:
  Raw raw_ = nullptr;
};

using KernelHandle = Handle<cl_kernel, clReleaseKernel>;
using EventHandle = Handle<cl_event, clReleaseEvent>;

/// The event of a command and the name of the kernel that it runs.
struct NamedEvent {
  EventHandle event;
  std::string name;
};
using MemoryHandle = Handle<cl_mem, clReleaseMemObject>;
using ProgramHandle = Handle<cl_program, clReleaseProgram>;

}  // namespace concord::opencl
