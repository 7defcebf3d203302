// The registry: lists and opens the devices of the backends of this build. Only this file names the backends. Used by
// Device::open and Device::list.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"

namespace concord {

/// Whether Device::open takes the CPU for it without asking OpenCL's drivers.
[[nodiscard]] bool selects_cpu(std::string_view selector);

/// Why each idle platform may have no device, one line each. Empty if there are none. For messages.
[[nodiscard]] std::string idle_platforms_hint();

/// The requirements of drivers, without which they give no devices.
[[nodiscard]] std::string_view driver_needs();

/// Whether the OpenCL backend is part of this build.
[[nodiscard]] bool has_opencl();

/// The names of OpenCL platforms without any device: the driver does not work, or it is for devices that this machine
/// does not have.
[[nodiscard]] std::vector<std::string> idle_platforms();

/// If another process started this one with `arguments` to build kernels, builds them and returns the exit code. For
/// the command.
[[nodiscard]] std::optional<int> serve_as_builder(std::span<const char* const> arguments);

/// Of a library: "2.6.3".
struct LibraryVersions {
  std::string built, loaded;  // compiled with, and found by this process
};
/// Nothing when the CPU backend is not part of this build.
[[nodiscard]] std::optional<LibraryVersions> onednn_versions();

namespace opencl {
/// Every OpenCL device in the order of its index; empty without a driver. Skips and logs a broken driver, and adds the
/// reason to `skipped`.
[[nodiscard]] std::vector<DeviceInfo> list_devices(std::vector<std::string>* skipped = nullptr);
[[nodiscard]] std::vector<std::string> idle_platforms();
/// Throws DeviceError.
[[nodiscard]] DevicePtr open_device(std::size_t index);
/// Builds programs for the process that started this one (opencl/program/build_processes.hpp) until it requests no
/// more. Returns the exit code.
[[nodiscard]] int build_programs();
}  // namespace opencl

namespace cpu {
/// The CPU through oneDNN: one device.
[[nodiscard]] std::vector<DeviceInfo> list_devices();
/// Throws DeviceError.
[[nodiscard]] DevicePtr open_device(std::size_t index);
[[nodiscard]] LibraryVersions onednn_versions();
}  // namespace cpu

}  // namespace concord
