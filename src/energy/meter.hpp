// Energy use of a device, if its driver or the system reports it. `concord compare` and `concord bench` use it.
#pragma once

#include <memory>
#include <string>

#include "concord/core/export.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// An energy counter. One thread at a time may use it.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  /// The joules since an arbitrary start. Throws DeviceError if the counter cannot be read.
  [[nodiscard]] virtual double joules() = 0;
  /// What the counter measures and where it comes from: "GPU, NVML".
  [[nodiscard]] virtual std::string source() const = 0;
};

/// Makes the energy meter of a device; null if the system reports no energy for it. Sources:
/// - NVIDIA GPU: NVML (CONCORD_DEBUG=nvml=LIBRARY, else libnvidia-ml.so.1).
/// - AMD or Intel GPU: the sensors of the Linux kernel (CONCORD_DEBUG=hwmon=FOLDER, else /sys/class/hwmon).
/// - CPU: the powercap counters of the Linux kernel (CONCORD_DEBUG=powercap=FOLDER, else /sys/class/powercap). They
///   count all programs on whole processors, and usually only root may read them.
[[nodiscard]] std::unique_ptr<EnergyMeter> energy_meter(const DeviceInfo& device);

}  // namespace concord
