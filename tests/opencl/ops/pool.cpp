// Formulas behind the gradients of pooling: which of them their kernels compute, row-major and channels-last, on every
// OpenCL device.
#include "concord/ops/pool.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compile/program.hpp"
#include "concord/ops/pointwise.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

// Apart and with a rest, overlapping, with padding, and with a kernel of its own for each place.
const std::vector<ops::PoolOptions> kWindows = {
    MaxPool2dOptions{.kernel = {2, 2}},
    MaxPool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
    MaxPool2dOptions{.kernel = {3, 2}, .stride = {1, 1}},
};

/// The gradient of a pool behind an activation, and added to another gradient.
Build behind(Value (*pool)(Value, const ops::PoolOptions&), const ops::PoolOptions& options) {
  return [pool, options](const std::vector<Value>& x) {
    return gradient(sum(pool(relu(x[0]), options)) + sum(x[0] * x[1]), std::vector{x[0]});
  };
}
Value max_of(Value x, const ops::PoolOptions& options) { return max_pool(x, options); }
Value average_of(Value x, const ops::PoolOptions& options) { return avg_pool(x, options); }

}  // namespace

TEST_CASE("the slope of an activation behind a pool is part of the pool's gradient", "[opencl][pool]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    for (const auto pool : {max_of, average_of}) {
      Graph graph;
      const std::vector<Value> inputs{graph.input("x", {DType::f32, {2, 3, 7, 6}}),
                                      graph.input("y", {DType::f32, {2, 3, 7, 6}})};
      Program program = compile(graph, behind(pool, kWindows[0])(inputs), std::make_shared<Variables>(device, 7));
      std::vector<std::string> names;
      for (const TraceEntry& entry : program.run_traced()) names.push_back(entry.op);
      CAPTURE(names);
      const std::string name = pool == max_of ? "max_pool_backward" : "avg_pool_backward";
      CHECK(names.back().starts_with(name + "+"));  // the slope, and the sum of the gradients
      CHECK(std::ranges::count_if(names, [&](const std::string& one) { return one.starts_with(name); }) == 1);
    }
  }
}

TEST_CASE("channels-last: the gradients of pools with a formula behind them", "[opencl][pool][channels_last]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const auto pool : {max_of, average_of}) {
      for (const ops::PoolOptions& options : kWindows) {
        INFO(options.str() << " on " << device->info().id);
        const Build build = behind(pool, options);
        const std::vector<Input> inputs{{integers({2, 24, 7, 6}, 1)}, {integers({2, 24, 7, 6}, 2)}};
        const Array expected = to_array(run(device, inputs, build)[0]);
        for (const Precision precision : {Precision::bf16, Precision::fp16}) {
          std::set<std::string> taken;
          const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken);
          const Array got = to_array(run(offering, inputs, build, {.precision = precision})[0]);
          CHECK(taken.contains(pool == max_of ? "max_pool_backward channels-last" : "avg_pool_backward channels-last"));
          double error = 0, largest = 0;
          for (std::size_t i = 0; i < got.values.size(); ++i) {
            error = std::max(error, std::abs(got.values[i] - expected.values[i]));
            largest = std::max(largest, std::abs(expected.values[i]));
          }
          CHECK(error <= (pool == max_of ? 0 : 0.01) * largest);  // whole numbers are stored as they are
        }
      }
    }
  }
}

}  // namespace concord::test
