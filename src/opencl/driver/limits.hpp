// DeviceLimits: limits below those of the device, so that one machine can act as a weaker device. Used by discovery and
// Context, for tests and to diagnose a device.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace concord::opencl {

struct DeviceLimits {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::size_t work_group = kNone;    // items
  std::size_t local_memory = kNone;  // bytes a work-group shares
  std::size_t compute_units = kNone;
  std::size_t memory = kNone;      // bytes of global memory
  std::size_t allocation = kNone;  // bytes of one buffer
  bool extensions = true;          // false: no KHR or vendor extension of OpenCL 1.2
  bool fp16 = true, fp64 = true;   // arithmetic in half and double precision
  bool images = true, subgroups = true;

  /// Whether work-groups or local memory are limited below those of the device.
  [[nodiscard]] bool are_lowered() const { return work_group != kNone || local_memory != kNone; }
  bool operator==(const DeviceLimits&) const = default;
};

/// The limits that CONCORD_DEBUG sets: limit.NAME with the members above as names, "limit.work_group=64,limit.fp64=0",
/// and portable=1 for limit.extensions=0. Throws ArgumentError that names the key in error.
[[nodiscard]] DeviceLimits device_limits();

/// Lines of OpenCL C for the start of a program: they turn the use of a forbidden feature into a compiler error. Empty
/// where everything is allowed.
[[nodiscard]] std::string prologue_of(const DeviceLimits& limits);

}  // namespace concord::opencl
