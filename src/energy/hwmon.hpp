// The energy of GPUs of AMD and Intel as the Linux kernel's sensors tell it (hwmon): a counter, or the power.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "concord/energy/meter.hpp"

namespace concord {

/// Of the GPU of this vendor ("Advanced Micro Devices, Inc.", "Intel(R) Corporation", …) at this PCI address
/// ("00000000:3B:00.0"); where the address is empty, of the only GPU of the vendor. `folder` holds a folder each sensor
/// chip, as /sys/class/hwmon: its `name` is the driver's (amdgpu, i915, xe), `device` leads to the folder of its PCI
/// address; energy1_input (Xe's energy2_input, where the whole card is not told) counts microjoules, power1_average or
/// power1_input are microwatts. Null where there is no such chip, or it tells neither.
[[nodiscard]] std::unique_ptr<EnergyMeter> hwmon_meter(const std::filesystem::path& folder, const std::string& vendor,
                                                       const std::string& pci_address);

}  // namespace concord
