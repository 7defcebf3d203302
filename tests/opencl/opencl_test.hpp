// What tests of the OpenCL backend's implementations share: the devices, an environment variable that names a way, and
// how far a product is from the right one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/platform.hpp"
#include "concord_test.hpp"

namespace concord::test {

/// An environment variable for as long as this lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name), before_(environment(name)) {
    setenv(name, value.c_str(), 1);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
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

/// The largest error of c = a·b, each a matrix, in units of the sum of the products' magnitudes.
[[nodiscard]] inline double error_of_product(const Tensor& a, const Tensor& b, const Tensor& c) {
  const std::int64_t rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
  const auto at = [](const Tensor& tensor, std::int64_t i) {
    return static_cast<double>(tensor.values<float>()[static_cast<std::size_t>(i)]);
  };
  double worst = 0;
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < columns; ++n) {
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        const double term = at(a, m * depth + k) * at(b, k * columns + n);
        sum += term;
        size += std::abs(term);
      }
      worst = std::max(worst, std::abs(at(c, m * columns + n) - sum) / size);
    }
  }
  return worst;
}

}  // namespace concord::test
