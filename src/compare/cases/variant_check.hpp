// check_variant: one of the ways to compute that a device has, held against the host in double precision and marked
// where it is wrong. Used by `concord doctor`.
#pragma once

#include <string>

#include "concord/device/device.hpp"
#include "concord/device/variants.hpp"

namespace concord {

struct VariantResult {
  Variant variant;          // its quirk as it now is
  bool was_taken = false;   // by a kernel of any check
  std::string unexplained;  // a fault that is there without the variant as well
};

/// Runs every case (variant_cases.hpp) that concerns the variant, in every precision that the device has, with kernels
/// that take it wherever it serves. Marks it where a result is wrong, or a kernel fails, and neither is so without it;
/// lifts a mark of before where nothing is wrong any more. That applies to `device` from now on; to store it is the
/// caller's. `variants` are the device's.
[[nodiscard]] VariantResult check_variant(const DevicePtr& device, Variants& variants, const std::string& name);

}  // namespace concord
