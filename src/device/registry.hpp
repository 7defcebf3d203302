// The registry: which device a selector means, and the entry points of the backends. The only place that names them;
// used by Device::open and Device::list, and by its test.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"

namespace concord {

/// The places in `infos` that "auto" tries, best first: GPUs, then accelerators, then the oneDNN CPU; only where the
/// oneDNN backend is absent, CPUs through OpenCL.
[[nodiscard]] std::vector<std::size_t> auto_order(std::span<const DeviceInfo> infos);

/// The place in `infos` of the device that `selector` names (see Device::open), $CONCORD_DEVICE's where it is empty.
/// Throws ArgumentError for what is no selector, DeviceError when none matches, or several that are not alike; the
/// message lists what there is.
[[nodiscard]] std::size_t select_device(std::span<const DeviceInfo> infos, std::string_view selector);

/// The selector, or what an empty one stands for: $CONCORD_DEVICE, else "auto".
[[nodiscard]] std::string wanted_device(std::string_view selector);

/// Whether Device::open takes the CPU for it without a look at OpenCL's drivers.
[[nodiscard]] bool selects_cpu(std::string_view selector);

/// What is wrong with a text that cannot be read as a selector, as a sentence without its end; empty where it can be,
/// whether or not there is such a device.
[[nodiscard]] std::string selector_error(std::string_view selector);

/// One line for messages: `opencl:0  NVIDIA H200 (gpu, NVIDIA CUDA)`.
[[nodiscard]] std::string describe(const DeviceInfo& info);

/// "cpu", "gpu", "accelerator".
[[nodiscard]] std::string_view name_of(DeviceKind kind);

/// Which packages hold OpenCL drivers.
[[nodiscard]] std::string_view driver_hint();

/// Why each of the idle platforms may have no device, a line each; empty where there is none. For messages.
[[nodiscard]] std::string idle_platforms_hint();

/// What drivers need to give devices.
[[nodiscard]] std::string_view driver_needs();

/// Whether the OpenCL backend is part of this build.
[[nodiscard]] bool has_opencl();

/// The names of OpenCL's platforms that have no device at all: a driver that is there and does not work, or one for
/// devices that this machine has not.
[[nodiscard]] std::vector<std::string> idle_platforms();

/// Where a process was started with `arguments` to build kernels for another one: does it, and gives the exit code. For
/// the command.
[[nodiscard]] std::optional<int> serve_as_builder(std::span<const char* const> arguments);

/// Of a library: "2.6.3".
struct LibraryVersions {
  std::string built, loaded;  // compiled with, and found by this process
};
/// Nothing when the CPU backend is not part of this build.
[[nodiscard]] std::optional<LibraryVersions> onednn_versions();

namespace opencl {
/// Every OpenCL device, in the order of its index; empty without a driver. A broken driver is skipped and logged, and
/// why is added to `skipped`.
[[nodiscard]] std::vector<DeviceInfo> list_devices(std::vector<std::string>* skipped = nullptr);
[[nodiscard]] std::vector<std::string> idle_platforms();
/// Throws DeviceError.
[[nodiscard]] DevicePtr open_device(std::size_t index);
/// Builds programs for the process that started this one (opencl/program/build_processes.hpp) until it asks for no
/// more. The exit code.
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
