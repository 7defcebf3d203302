// CONCORD_KERNELS: a device runs the kernels made for CPUs and those made for GPUs, with the same results.
#include <cstdlib>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

DevicePtr opened_with(const std::string& selector, const char* kind) {
  setenv("CONCORD_KERNELS", kind, 1);
  try {
    DevicePtr device = Device::open(selector);
    unsetenv("CONCORD_KERNELS");
    return device;
  } catch (...) {
    unsetenv("CONCORD_KERNELS");
    throw;
  }
}

/// Of families with kernels of their own for each kind: pooling, depthwise convolution, copies, pointwise, reductions.
std::vector<Value> of_both_kinds(const std::vector<Value>& x) {
  const Value features = conv2d(max_pool2d(x[0], {.kernel = {2, 2}}), x[1], {.padding = {1, 1}, .groups = 2});
  const Value moved = transpose(features, {0, 2, 3, 1});
  std::vector<Value> results{sum(moved * moved), reduce_max(features, {1})};
  for (const Value& slope : gradient(results[0], x)) results.push_back(slope);
  return results;
}

}  // namespace

TEST_CASE("kernels for CPUs and for GPUs give the same whole numbers on any device", "[opencl]") {
  const std::vector<Input> inputs{{integers({2, 2, 10, 22}, 1)}, {integers({2, 1, 3, 3}, 2)}};
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    const std::string& id = device->info().id;
    INFO(id);
    const std::vector<Tensor> expected = run(devices().front(), inputs, of_both_kinds);
    for (const char* kind : {"cpu", "gpu"}) {
      INFO("kernels for a " << kind);
      const std::vector<Tensor> results = run(opened_with(id, kind), inputs, of_both_kinds);
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]) == "");
    }
    CHECK_THROWS_WITH(opened_with(id, "tpu"), contains("CONCORD_KERNELS is \"tpu\"") && contains("cpu and gpu"));
  }
}

}  // namespace concord::test
