// measure_speed: what a device reaches at best, for rooflines and for people. Used by `concord profile` and `doctor`.
#pragma once

#include "concord/core/export.hpp"
#include "concord/device/device.hpp"

namespace CONCORD_PUBLIC concord {

/// Measured by the host's clock around small programs; medians.
struct DeviceSpeed {
  double bytes_per_second = 0;           // x + 1 over arrays beyond any cache; reads and writes counted
  double flops_per_second = 0;           // the fastest square matrix product
  std::int64_t product_size = 0;         // and its size
  double launch_seconds = 0;             // a kernel of 16 numbers among others like it
  double upload_bytes_per_second = 0;    // from pageable memory
  double download_bytes_per_second = 0;  // to pageable memory
  double upload_seconds = 0;             // of 4 bytes, until they have arrived
  double download_seconds = 0;           // of 4 bytes
};

/// Takes about three seconds, and memory for two arrays of at most 256 MiB and a sixteenth of the device's.
[[nodiscard]] DeviceSpeed measure_speed(const DevicePtr& device, Precision precision = Precision::fp32);

}  // namespace concord
