// Reductions in one pass and in several, on every OpenCL device.
#include "concord/ops/reduce.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compile/program.hpp"
#include "concord/ops/pointwise.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// The kernels of the compiled graph in execution order.
std::vector<std::string> kernels(const DevicePtr& device, const Shape& src, const Build& build) {
  Graph graph;
  const std::vector<Value> results = build({graph.input("x", {DType::f32, src})});
  Program program = compile(graph, results, std::make_shared<Variables>(device, 7));
  std::vector<std::string> names;
  for (const TraceEntry& entry : program.run_traced()) {
    if (!entry.kernel.empty()) names.push_back(entry.kernel);
  }
  return names;
}

}  // namespace

TEST_CASE("images are summed by channel in one pass where another launch costs more", "[opencl][reduce]") {
  struct Images {
    Shape src;
    bool is_small;
  };
  // Runs of every kind: whole lines, two values, a prime number of them; more and fewer than a group reads at once.
  const std::vector<Images> cases = {{{64, 50, 8, 8}, true}, {{64, 20, 24, 24}, true}, {{3, 5, 2, 1}, true},
                                     {{7, 3, 13, 1}, true},  {{2, 300, 5, 7}, true},   {{70, 3, 64, 64}, false}};
  for (const DevicePtr& device : opencl_devices()) {
    for (const auto& [src, is_small] : cases) {
      INFO(src.str() << " on " << device->info().id);
      const Array x = integers(src, 1);
      const Build build = [](const std::vector<Value>& v) { return std::vector{sum(v[0], {0, 2, 3}, true)}; };
      const std::int64_t places = src[2] * src[3];
      std::vector<double> sums(static_cast<std::size_t>(src[1]));
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        sums[i / static_cast<std::size_t>(places) % sums.size()] += x.values[i];
      }
      CHECK(to_array(run(device, {{x}}, build)[0]).values == sums);
      const opencl::Limits& limits = context_of(device).limits();
      if (limits.is_cpu || limits.max_work_group < 1024) continue;
      CHECK(kernels(device, src, build) ==
            std::vector<std::string>{is_small ? "reduce_sum, 1 pass" : "reduce_sum, 2 passes"});
    }
  }
}

TEST_CASE("the largest and the product by channel in one pass", "[opencl][reduce]") {
  const Array x = uniform({9, 4, 11, 3}, 1, 0.9, 1.1);
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    const std::vector<Tensor> found = run(device, {{x}}, [](const std::vector<Value>& v) {
      return std::vector{reduce_max(v[0], {0, 2, 3}), prod(v[0], {0, 2, 3})};
    });
    for (std::size_t c = 0; c < 4; ++c) {
      double most = -1e300, all = 1;
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        if (i / 33 % 4 != c) continue;
        most = std::max(most, x.values[i]);
        all *= x.values[i];
      }
      CHECK(found[0].values<float>()[c] == static_cast<float>(most));
      CHECK(found[1].values<float>()[c] == Approx(all).epsilon(1e-4));
    }
  }
}

TEST_CASE("the mean of all numbers is one node of the graph", "[opencl][reduce]") {
  // One number, one pass, and parts of which the second pass makes the result.
  for (const Shape& src : {Shape{1, 1}, Shape{64}, Shape{7, 3, 5}, Shape{300, 1001}}) {
    const Input x{uniform(src, 1, 0.5, 1)}, y{uniform({1}, 2, 0.5, 1)};
    for (const DevicePtr& device : opencl_devices()) {
      INFO(src.str() << " on " << device->info().id);
      const Build build = [](const std::vector<Value>& v) {
        return std::vector{mean(v[0]), v[1] / 4.0F + sum(v[0], {}, true), norm(v[0]) * 2.0F - v[1]};
      };
      CHECK(kernels(device, src, [&](const std::vector<Value>& v) { return std::vector{mean(v[0]) * 3.0F}; }).size() ==
            1);
      double total = 0, squares = 0;
      for (const double value : x.value.values) {
        total += value;
        squares += value * value;
      }
      const std::vector<Tensor> results = run(device, {x, y}, build);
      CHECK(results[0].shape() == Shape{});
      CHECK(results[0].values<float>()[0] == Approx(total / static_cast<double>(src.elements())).epsilon(1e-6));
      CHECK(results[1].values<float>()[0] == Approx(total + y.value.values[0] / 4).epsilon(1e-6));
      CHECK(results[2].values<float>()[0] == Approx(2 * std::sqrt(squares) - y.value.values[0]).epsilon(1e-6));
    }
  }
}

}  // namespace concord::test
