// What a driver cannot do, so that a test which needs it leaves that out (docs/driver-bugs.md).
#pragma once

#include <algorithm>
#include <string_view>

#include "concord_test.hpp"

namespace concord::test {

/// Whether the driver tells when a kernel began and ended. Mesa's rusticl 22.3 answers with placeholders.
[[nodiscard]] inline bool has_times(const DevicePtr& device) {
  return device->info().platform != "rusticl" || !device->info().driver.starts_with("22.");
}
/// The same of the tests' device that is called so.
[[nodiscard]] inline bool has_times(std::string_view id) {
  const auto found = std::ranges::find(devices(), id, [](const DevicePtr& device) { return device->info().id; });
  return found != devices().end() && has_times(*found);
}

}  // namespace concord::test
