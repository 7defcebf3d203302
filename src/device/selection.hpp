// Which devices of a list selectors name, in which order "auto" tries them, and what messages say of devices. Used by
// the registry and the commands.
#pragma once

#include <cstddef>
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

/// The same for this process, if a launcher made it a rank and gave it no device, unlike `concord launch`, and the
/// selector is empty: else auto_order. Warns of ranks that share a device.
[[nodiscard]] std::vector<std::size_t> auto_order_of_process(std::span<const DeviceInfo> infos,
                                                             std::string_view selector);

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

/// The reason why a text is not a valid selector, as a sentence without a full stop. Empty if it is valid, whether or
/// not there is such a device.
[[nodiscard]] std::string selector_error(std::string_view selector);

/// One line for messages: `opencl:0  NVIDIA H200 (gpu, NVIDIA CUDA)`.
[[nodiscard]] std::string describe(const DeviceInfo& info);

/// "cpu", "gpu", "accelerator".
[[nodiscard]] std::string_view name_of(DeviceKind kind);

/// Which packages hold OpenCL drivers.
[[nodiscard]] std::string_view driver_hint();

/// The devices of this machine, one line each. For messages.
[[nodiscard]] std::string listing(std::span<const DeviceInfo> infos);

}  // namespace concord
