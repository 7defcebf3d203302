// Energy: how much a device has used, where its driver or the system tells. For `concord compare` and `concord bench`.
#pragma once

#include <memory>
#include <string>

#include "concord/core/export.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// A counter of energy, such as a driver's. One thread at a time.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  /// Joules since some moment before. Throws DeviceError when the counter cannot be read any more.
  [[nodiscard]] virtual double joules() = 0;
  /// Whose energy it is and who says so: "GPU, NVML".
  [[nodiscard]] virtual std::string source() const = 0;
};

/// Of an NVIDIA GPU through NVML ($CONCORD_NVML, else libnvidia-ml.so.1), of one of AMD or Intel through the kernel's
/// sensors ($CONCORD_HWMON, else /sys/class/hwmon), of a CPU through the kernel's powercap counters ($CONCORD_POWERCAP,
/// else /sys/class/powercap), which mostly only root may read: they count whole processors, whatever runs on them. Null
/// where nobody tells.
[[nodiscard]] std::unique_ptr<EnergyMeter> energy_meter(const DeviceInfo& device);

}  // namespace concord
