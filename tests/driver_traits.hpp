// What a driver cannot do, so that tests which need it leave its devices out and say so (docs/portability.md).
#pragma once

#include "concord_test.hpp"

namespace concord::test {

/// Those that tell when a kernel began and ended. Mesa's rusticl 22.3 answers with placeholders.
[[nodiscard]] inline std::vector<DevicePtr> devices_with_times(std::vector<DevicePtr> all = devices()) {
  std::erase_if(all, [](const DevicePtr& device) {
    const bool has_none = device->info().platform == "rusticl";
    if (has_none) WARN("skipped: " << device->info().name << " tells no times of kernels");
    return has_none;
  });
  return all;
}

}  // namespace concord::test
