// Discovery: which OpenCL devices this machine has, whatever its drivers are like. Used by the device registry.
#pragma once

#include <boost/compute/device.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"

namespace concord::opencl {

/// Every usable device of every platform, platforms in the loader's order. No driver at all gives an empty list;
/// platforms that fail and devices that cannot compile are left out and logged, and why is added to `skipped`.
[[nodiscard]] std::vector<boost::compute::device> enumerate_devices(std::vector<std::string>* skipped = nullptr);

/// What the device says of itself; its id is "opencl:<index>".
[[nodiscard]] DeviceInfo info_of(const boost::compute::device& device, std::size_t index);

/// Whether a device with these words about its version ("OpenCL 1.1 …") is older than what kernels are written
/// for, 1.2.
[[nodiscard]] bool is_too_old(std::string_view version);

/// Whether kernels for CPUs suit it. Simulators claim to be everything; they are served as GPUs.
[[nodiscard]] bool is_cpu(const boost::compute::device& device);

}  // namespace concord::opencl
