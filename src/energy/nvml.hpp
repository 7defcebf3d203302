// The energy counter of an NVIDIA GPU. Loads the driver's management library at the first use.
#pragma once

#include <memory>
#include <string>

#include "concord/energy/meter.hpp"

namespace concord {

/// The meter of the GPU at this PCI address. Null if the library does not load, does not know the GPU, or the GPU has
/// no counter (before Volta).
[[nodiscard]] std::unique_ptr<EnergyMeter> nvml_meter(const std::string& library, const std::string& pci_address);

}  // namespace concord
