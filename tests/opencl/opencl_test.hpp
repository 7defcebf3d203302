// What tests of the OpenCL backend's implementations share: the devices and an environment variable that names a way.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

/// An environment variable for as long as this lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

/// Those of the tests' devices that are the OpenCL backend's.
[[nodiscard]] inline std::vector<DevicePtr> opencl_devices() {
  std::vector<DevicePtr> found;
  for (const DevicePtr& device : devices()) {
    if (device->info().backend == "opencl") found.push_back(device);
  }
  if (found.empty()) WARN("skipped: no OpenCL device");
  return found;
}

}  // namespace concord::test
