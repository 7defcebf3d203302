// CONCORD_DEBUG=kernels=KIND: a device runs the kernels made for CPUs and those made for GPUs, with the same results.
#include <cmath>

#include "ops/op_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

DevicePtr opened_with(const std::string& selector, const char* kind) {
  const DebugOption kernels("kernels", kind);
  return Device::open(selector);
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
    CHECK_THROWS_WITH(opened_with(id, "tpu"), contains("kernels is \"tpu\"") && contains("cpu, gpu"));
  }
}

// On GPUs a small step is one launch, product and all.
TEST_CASE("recurrent kernels for CPUs and for GPUs agree on any device", "[opencl][recurrent]") {
  const auto results_on = [](const DevicePtr& device) {
    const std::vector<Input> inputs{
        {normal({3, 66, 32}, 1)}, {normal({32, 8}, 2)}, {normal({66, 8}, 3)}, {normal({66, 8}, 4)}};
    return run(device, inputs, [](const std::vector<Value>& in) {
      const RecurrentResult result =
          recurrent(ops::RecurrentCell::lstm, {.gates_x = in[0], .weights = in[1], .h0 = in[2], .c0 = in[3]}, false);
      return std::vector{result.y, result.hn, result.cn};
    });
  };
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    INFO(device->info().id);
    const std::vector<Tensor> by_cpu = results_on(opened_with(device->info().id, "cpu"));
    const std::vector<Tensor> by_gpu = results_on(opened_with(device->info().id, "gpu"));
    for (std::size_t i = 0; i < by_cpu.size(); ++i) {
      const Array got = to_array(by_gpu[i]), expected = to_array(by_cpu[i]);
      for (std::size_t e = 0; e < got.values.size(); ++e) CHECK(std::abs(got.values[e] - expected.values[e]) < 1e-5);
    }
  }
}

}  // namespace concord::test
