// OpenCL status codes as exceptions. Every raw OpenCL call of the backend goes through `check`.
#pragma once

#include <CL/cl.h>

#include <boost/compute/exception/opencl_error.hpp>
#include <string_view>

namespace concord::opencl {

/// "CL_OUT_OF_RESOURCES"; "unknown OpenCL error" for a code without a name.
[[nodiscard]] std::string_view status_name(cl_int status);

/// Advice for the user: a sentence without its full stop.
[[nodiscard]] std::string_view advice(cl_int status);

/// Whether device or host have no memory left.
[[nodiscard]] bool is_memory_failure(cl_int status);

/// Throws for anything but CL_SUCCESS: OutOfMemory when device or host ran out of memory, else DeviceError. The message
/// names the call, the device and the code, and says what to do.
void check(cl_int status, std::string_view call, std::string_view device);
/// The same for a call that allocates or maps memory: there CL_OUT_OF_RESOURCES also means out of memory.
void check_allocation(cl_int status, std::string_view call, std::string_view device);

/// Calls `function` and turns a Boost.Compute exception into one of the exceptions above; `what` names the call.
template <class Function>
auto translated(std::string_view device, std::string_view what, Function&& function) {
  try {
    return function();
  } catch (const boost::compute::opencl_error& error) {
    check(error.error_code(), what, device);
    throw;
  }
}

}  // namespace concord::opencl
