// The inside of a device, for tests of the backend.
#pragma once

#include "concord/opencl/device.hpp"

namespace concord::test {

[[nodiscard]] inline opencl::Context& context_of(const DevicePtr& device) {
  return dynamic_cast<opencl::OpenClDevice&>(*device).context();
}

}  // namespace concord::test
