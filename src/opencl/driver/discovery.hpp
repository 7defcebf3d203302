// Discovery: lists the OpenCL devices of this machine and tolerates faulty drivers. Used by the device registry.
#pragma once

#include <boost/compute/device.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"

namespace concord::opencl {

/// Every usable device of every platform, platforms in the loader's order. Returns an empty list without a driver.
/// Leaves out and logs platforms that fail and devices that cannot compile; adds the reasons to `skipped`.
[[nodiscard]] std::vector<boost::compute::device> enumerate_devices(std::vector<std::string>* skipped = nullptr);

/// The properties that the device reports; its id is "opencl:<index>".
[[nodiscard]] DeviceInfo info_of(const boost::compute::device& device, std::size_t index);

/// Whether a device that reports this version ("OpenCL 1.1 …") is older than OpenCL 1.2, which the kernels need.
[[nodiscard]] bool is_too_old(std::string_view version);

/// Whether the device uses the kernels for CPUs. A simulator that reports every device type counts as a GPU.
[[nodiscard]] bool is_cpu(const boost::compute::device& device);

}  // namespace concord::opencl
