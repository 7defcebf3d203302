// What tests of the OpenCL backend's implementations share: the devices, and how far a product is from the right one.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "concord_test.hpp"
#include "setting.hpp"

namespace concord::test {

/// Those of the tests' devices that are the OpenCL backend's.
[[nodiscard]] inline std::vector<DevicePtr> opencl_devices() {
  std::vector<DevicePtr> found;
  for (const DevicePtr& device : devices()) {
    if (device->info().backend == "opencl") found.push_back(device);
  }
  if (found.empty()) WARN("skipped: no OpenCL device");
  return found;
}

/// Of these the ones that take work-groups of so many items: for kernels that are chosen nowhere else.
[[nodiscard]] inline std::vector<DevicePtr> opencl_devices_with_groups_of(std::size_t items) {
  std::vector<DevicePtr> found = opencl_devices();
  std::erase_if(found, [&](const DevicePtr& device) { return device->info().max_work_group < items; });
  if (found.empty()) WARN("skipped: no OpenCL device with work-groups of " << items);
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
