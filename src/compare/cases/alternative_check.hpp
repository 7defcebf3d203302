// check_alternative compares a kernel alternative with the host in double precision and disables it if it is wrong.
// Used by `concord doctor`.
#pragma once

#include <string>

#include "concord/device/device.hpp"
#include "concord/device/kernel_alternatives.hpp"

namespace concord {

struct AlternativeResult {
  KernelAlternative alternative;  // with its reason after the check
  bool was_taken = false;         // by a kernel of any check
  std::string unexplained;        // a fault that occurs without the alternative too
};

/// Runs every case (alternative_cases.hpp) for the alternative, in every precision of the device, with kernels that use
/// it wherever it supports the operator. Disables it if a result is wrong or a kernel fails, and neither happens
/// without it. Enables it again if nothing is wrong any more. This applies to `device`; the caller stores it. Throws
/// OutOfMemory and std::bad_alloc, which are no fault of an alternative: it then is as it was before.
/// `alternatives` belong to the device.
[[nodiscard]] AlternativeResult check_alternative(const DevicePtr& device, KernelAlternatives& alternatives,
                                                  const std::string& name);

}  // namespace concord
