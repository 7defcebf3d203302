// Which counter serves a device.
#include "concord/core/platform.hpp"
#include "concord/energy/hwmon.hpp"
#include "concord/energy/meter.hpp"
#include "concord/energy/nvml.hpp"
#include "concord/energy/powercap.hpp"

namespace concord {

std::unique_ptr<EnergyMeter> energy_meter(const DeviceInfo& device) {
  if (device.kind == DeviceKind::cpu) {
    return powercap_meter(environment("CONCORD_POWERCAP").value_or("/sys/class/powercap"));
  }
  const std::string& address = device.pci_address;
  if (!address.empty()) {
    auto meter = nvml_meter(environment("CONCORD_NVML").value_or("libnvidia-ml.so.1"), address);
    if (meter != nullptr) return meter;
  }
  return hwmon_meter(environment("CONCORD_HWMON").value_or("/sys/class/hwmon"), device.vendor, address);
}

}  // namespace concord
