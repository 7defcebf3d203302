// DeviceLimits: what a device is held to, below what it has, so that one machine shows what weaker devices will do.
// Read by discovery and Context; for tests and for a user in doubt about a device.
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
  bool extensions = true;          // false: nothing that OpenCL 1.2 leaves to extensions, of a vendor or not
  bool fp16 = true, fp64 = true;   // arithmetic in half and double precision
  bool images = true, subgroups = true;

  /// Whether a kernel may get less than the device has.
  [[nodiscard]] bool are_lowered() const { return work_group != kNone || local_memory != kNone; }
  bool operator==(const DeviceLimits&) const = default;
};

/// The limits that CONCORD_DEBUG sets: limit.NAME with the members above as names, "limit.work_group=64,limit.fp64=0",
/// and portable=1 for limit.extensions=0. Throws ArgumentError that names the key in error.
[[nodiscard]] DeviceLimits device_limits();

/// Lines of OpenCL C in front of a kernel that make using what is forbidden an error of the compiler; empty where all
/// is allowed.
[[nodiscard]] std::string prologue_of(const DeviceLimits& limits);

}  // namespace concord::opencl
