// Which counter serves a device.
#include "concord/device/energy.hpp"

#include "concord/core/platform.hpp"
#include "concord/device/nvml.hpp"
#include "concord/device/powercap.hpp"

namespace concord {

std::unique_ptr<EnergyMeter> energy_meter(const Device& device) {
  if (device.info().kind == DeviceKind::cpu) {
    return powercap_meter(environment("CONCORD_POWERCAP").value_or("/sys/class/powercap"));
  }
  const auto* const plugged = dynamic_cast<const HasPciAddress*>(&device);
  const std::optional<std::string> address = plugged == nullptr ? std::nullopt : plugged->pci_address();
  return address ? nvml_meter(environment("CONCORD_NVML").value_or("libnvidia-ml.so.1"), *address) : nullptr;
}

}  // namespace concord
