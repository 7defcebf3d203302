// measure_speed: the highest speed that a device reaches, for rooflines and reports. `concord profile` and `concord
// doctor` use it.
#pragma once

#include "concord/core/export.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// Medians over small programs, measured with the host's clock.
struct DeviceSpeed {
  double bytes_per_second = 0;           // x + 1 over arrays larger than any cache; counts reads and writes
  double flops_per_second = 0;           // the fastest square matrix multiplication
  std::int64_t product_size = 0;         // the size of that matrix multiplication
  double launch_seconds = 0;             // time of a kernel on 16 numbers in a sequence of such kernels
  double upload_bytes_per_second = 0;    // from pageable memory
  double download_bytes_per_second = 0;  // to pageable memory
  double upload_seconds = 0;             // 4 bytes, until they have arrived
  double download_seconds = 0;           // 4 bytes
};

/// Takes about three seconds. Allocates two arrays, each of at most 256 MiB and a sixteenth of the device's memory.
[[nodiscard]] DeviceSpeed measure_speed(const DevicePtr& device, Precision precision = Precision::fp32);

}  // namespace concord
