// The registry: finds the device for a selector, and holds the entry points of the backends. Only this file names the
// backends. Used by Device::open and Device::list, and by its test.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/device.hpp"

namespace concord {

/// The indices in `infos` that "auto" tries, best first: GPUs, then accelerators, then the oneDNN CPU. CPUs through
/// OpenCL count only if the oneDNN backend is absent.
[[nodiscard]] std::vector<std::size_t> auto_order(std::span<const DeviceInfo> infos);

/// The same for a rank of this machine, from 0: of the devices of the best kind, which the ranks take in turn, its own
/// first.
[[nodiscard]] std::vector<std::size_t> auto_order_of_rank(std::span<const DeviceInfo> infos, int local_rank);

/// The index in `infos` of the device that `selector` names (see Device::open); an empty one means $CONCORD_DEVICE.
/// Throws ArgumentError for an invalid selector. Throws DeviceError if no device matches, or several different ones do;
/// the message lists the devices.
[[nodiscard]] std::size_t select_device(std::span<const DeviceInfo> infos, std::string_view selector);

/// The indices in `infos` of the devices that these selectors name, for a training on several: each a selector of
/// Device::open that names every device that it matches ("opencl:gpu"), or "all": every GPU and accelerator, and where
/// there is none the CPU. Throws as select_device, and ArgumentError for a device that is named twice.
[[nodiscard]] std::vector<std::size_t> select_devices(std::span<const DeviceInfo> infos,
                                                      std::span<const std::string> selectors);

/// The selector; for an empty one $CONCORD_DEVICE, else "auto".
[[nodiscard]] std::string wanted_device(std::string_view selector);

/// Whether Device::open takes the CPU for it without asking OpenCL's drivers.
[[nodiscard]] bool selects_cpu(std::string_view selector);

/// The reason why a text is not a valid selector, as a sentence without a full stop. Empty if it is valid, whether or
/// not there is such a device.
[[nodiscard]] std::string selector_error(std::string_view selector);

/// One line for messages: `opencl:0  NVIDIA H200 (gpu, NVIDIA CUDA)`.
[[nodiscard]] std::string describe(const DeviceInfo& info);

/// "cpu", "gpu", "accelerator".
[[nodiscard]] std::string_view name_of(DeviceKind kind);

/// Which packages hold OpenCL drivers.
[[nodiscard]] std::string_view driver_hint();

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
