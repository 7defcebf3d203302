// Chooses the energy meter of a device.
#include "concord/core/debug_options.hpp"
#include "concord/energy/hwmon.hpp"
#include "concord/energy/meter.hpp"
#include "concord/energy/nvml.hpp"
#include "concord/energy/powercap.hpp"

namespace concord {

std::unique_ptr<EnergyMeter> energy_meter(const DeviceInfo& device) {
  if (device.kind == DeviceKind::cpu) {
    return powercap_meter(debug_option("powercap").value_or("/sys/class/powercap"));
  }
  const std::string& address = device.pci_address;
  if (!address.empty()) {
    auto meter = nvml_meter(debug_option("nvml").value_or("libnvidia-ml.so.1"), address);
    if (meter != nullptr) return meter;
  }
  return hwmon_meter(debug_option("hwmon").value_or("/sys/class/hwmon"), device.vendor, address);
}

}  // namespace concord
