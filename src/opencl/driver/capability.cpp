// The properties that NVIDIA's driver reports and the CUDA guide lists for each generation.
#include "concord/opencl/driver/capability.hpp"

#include <CL/cl_ext.h>

#include <string>

#include "concord/opencl/driver/limits.hpp"

namespace concord::opencl {

Capability capability_of(const boost::compute::device& device) {
  Capability found;
  const bool is_nvidia = device.vendor().find("NVIDIA") != std::string::npos;
  const DeviceLimits held_to = device_limits();
  if (!is_nvidia || !held_to.extensions || held_to.are_lowered()) return found;
  const auto ask = [&](cl_device_info what, unsigned& value) {
    if (clGetDeviceInfo(device.id(), what, sizeof value, &value, nullptr) != CL_SUCCESS) value = 0;
  };
  ask(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, found.major);
  ask(CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, found.minor);
  return found;
}

std::size_t declarable_local_memory(Capability capability, std::size_t reported) {
  constexpr std::size_t kKiB = 1024;
  const auto [major, minor] = capability;
  if (major == 8) return (minor == 0 || minor == 7 ? 163 : 99) * kKiB;
  if (major == 9 || major == 10) return 227 * kKiB;
  return major > 10 ? 99 * kKiB : reported;
}

}  // namespace concord::opencl
