// The energy of AMD and Intel GPUs from the sensors of the Linux kernel (hwmon): an energy counter, or the power.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "concord/energy/meter.hpp"

namespace concord {

/// The meter of the GPU of this vendor ("Advanced Micro Devices, Inc.", "Intel(R) Corporation", …) at this PCI address
/// ("00000000:3B:00.0"). If the address is empty, the vendor must have only one GPU. `folder` has a folder for each
/// sensor chip, like /sys/class/hwmon. There, `name` is the driver's name (amdgpu, i915, xe) and `device` links to the
/// folder of the PCI address. energy1_input counts microjoules; Xe has energy2_input if it does not report the whole
/// card. power1_average and power1_input are in microwatts. Null if there is no such chip, or if it reports neither
/// energy nor power.
[[nodiscard]] std::unique_ptr<EnergyMeter> hwmon_meter(const std::filesystem::path& folder, const std::string& vendor,
                                                       const std::string& pci_address);

}  // namespace concord
