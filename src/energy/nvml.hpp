// The energy counter of an NVIDIA GPU. The driver's management library is loaded when it is asked for.
#pragma once

#include <memory>
#include <string>

#include "concord/energy/meter.hpp"

namespace concord {

/// Of the GPU at this PCI address. Null where the library does not load, does not know the GPU, or the GPU has no
/// counter (before Volta).
[[nodiscard]] std::unique_ptr<EnergyMeter> nvml_meter(const std::string& library, const std::string& pci_address);

}  // namespace concord
