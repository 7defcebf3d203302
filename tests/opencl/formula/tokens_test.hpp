// What tests of kernels on tokens in 16 bits share.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>

#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

/// In parts of the largest number expected.
inline double largest_error(const Tensor& result, const Tensor& expected) {
  const Array got = to_array(result), right = to_array(expected);
  double error = 0, largest = 0;
  for (std::size_t k = 0; k < got.values.size(); ++k) {
    error = std::max(error, std::abs(got.values[k] - right.values[k]));
    largest = std::max(largest, std::abs(right.values[k]));
  }
  return error == 0 ? 0 : error / largest;
}

inline void check_tokens(const std::vector<Input>& inputs, const Build& build, double tolerance,
                         const std::set<std::string>& kernels) {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    const std::vector<Tensor> expected = run(device, inputs, build);
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      std::set<std::string> taken;
      const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
      const std::vector<Tensor> results = run(offering, inputs, build, {.precision = precision});
      CHECK(taken == kernels);
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("result " << i);
        CHECK(largest_error(results[i], expected[i]) <= tolerance);
      }
    }
  }
}

}  // namespace concord::test
