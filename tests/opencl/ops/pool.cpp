// Global pooling by kernels of both kinds, and formulas behind the gradients of pooling: which of them their kernels
// compute, row-major and channels-last, on every OpenCL device.
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

TEST_CASE("a window of the whole image is a row of a reduction", "[opencl][pool]") {
  // Reads of four values and of one; lanes in one turn and in several; few rows in parts; one image, channel and pixel.
  const std::vector<Shape> images = {{1, 1, 1, 1}, {3, 5, 7, 7},   {2, 3, 8, 6},    {1, 1, 2, 1},     {5, 70, 14, 14},
                                     {2, 3, 1, 4}, {1, 2, 113, 9}, {2, 2, 112, 60}, {1, 2, 300, 300}, {1, 1, 303, 301}};
  for (const DevicePtr& device : opencl_devices()) {
    for (const char* kind : {"cpu", "gpu"}) {
      const DebugOption kernels("kernels", kind);
      const DevicePtr opened = Device::open(device->info().id);
      for (const Shape& shape : images) {
        INFO(shape.str() << " by kernels for a " << kind << ", " << opened->info().id);
        Array x = integers(shape, 1);
        const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
        x.values.back() = std::nan("");
        if (pixels > 3) x.values[x.values.size() - 2] = std::nan("");
        const std::vector<Tensor> found = run(opened, {{x}}, [](const std::vector<Value>& v) {
          const MaxPooled pooled =
              max_pool_with_indices(v[0], MaxPool2dOptions{.kernel = {v[0].shape()[2], v[0].shape()[3]}});
          return std::vector{global_avg_pool(v[0]), pooled.values, pooled.indices};
        });
        for (std::size_t row = 0; row < x.values.size() / pixels; ++row) {
          double total = 0;
          std::size_t place = 0;
          for (std::size_t i = 0; i < pixels; ++i) {
            const double value = x.values[row * pixels + i], best = x.values[row * pixels + place];
            total += value;
            if (value > best || (std::isnan(value) && !std::isnan(best))) place = i;
          }
          const double mean = total / static_cast<double>(pixels), largest = x.values[row * pixels + place];
          const float got_mean = found[0].values<float>()[row], got_largest = found[1].values<float>()[row];
          const bool is_mean = std::isnan(mean) ? std::isnan(got_mean) : got_mean == static_cast<float>(mean);
          const bool is_largest = std::isnan(largest) ? std::isnan(got_largest) : got_largest == largest;
          INFO("row " << row << ": " << got_mean << " and " << got_largest << " for " << mean << " and " << largest);
          CHECK((is_mean && is_largest && found[2].values<std::int32_t>()[row] == static_cast<std::int32_t>(place)));
        }
      }
    }
  }
}

TEST_CASE("global pooling of volumes, and what averages divide by", "[opencl][pool]") {
  for (const DevicePtr& device : opencl_devices()) {
    for (const char* kind : {"cpu", "gpu"}) {
      const DebugOption kernels("kernels", kind);
      const DevicePtr opened = Device::open(device->info().id);
      INFO("kernels for a " << kind << ", " << opened->info().id);
      const Array x = integers({2, 3, 2, 5, 4}, 1);
      const std::vector<Tensor> found = run(opened, {{x}}, [](const std::vector<Value>& v) {
        const AvgPool3dOptions whole{.kernel = {2, 5, 4}, .divisor_override = 8};
        return std::vector{avg_pool3d(v[0], whole), global_avg_pool(v[0]), relu(global_avg_pool(v[0])) + 1.0F};
      });
      for (std::size_t row = 0; row < 6; ++row) {
        double total = 0;
        for (std::size_t i = 0; i < 40; ++i) total += x.values[row * 40 + i];
        const auto mean = static_cast<float>(total / 40);
        CHECK(found[0].values<float>()[row] == static_cast<float>(total / 8));
        CHECK(found[1].values<float>()[row] == mean);
        CHECK(found[2].values<float>()[row] == std::max(mean, 0.0F) + 1.0F);
      }
    }
  }
}

TEST_CASE("items share a large window that is far from the next one", "[opencl][pool]") {
  // Apart, with padding, with dilation, of volumes, of signals, and adaptive; windows wider and narrower than 32
  // pixels.
  const std::vector<std::pair<Shape, ops::PoolOptions>> cases = {
      {{2, 3, 24, 17}, MaxPool2dOptions{.kernel = {8, 8}}},
      {{1, 2, 30, 90}, MaxPool2dOptions{.kernel = {12, 40}, .stride = {9, 41}, .padding = {5, 6}, .ceil_mode = true}},
      {{2, 2, 40, 31}, MaxPool2dOptions{.kernel = {9, 8}, .stride = {4, 8}, .padding = {2, 1}, .dilation = {3, 2}}},
      {{1, 3, 9, 20, 18}, MaxPool3dOptions{.kernel = {4, 9, 9}, .padding = {1, 2, 3}}},
      {{3, 2, 1000}, MaxPool1dOptions{.kernel = {130}, .stride = {100}, .padding = {20}}},
      {{2, 2, 29, 44}, {.adaptive = {1, 3, 5}}},
      {{1, 2, 9, 18, 16}, {.rank = 3, .adaptive = {2, 3, 2}}}};
  for (const DevicePtr& device : opencl_devices()) {
    const auto by = [&](const char* kind, const Array& x, ops::PoolOptions options) {
      const DebugOption kernels("kernels", kind);
      return run(Device::open(device->info().id), {{x}}, [options](const std::vector<Value>& v) mutable {
        const MaxPooled pooled = max_pool_with_indices(v[0], options);
        options.dilation = {1, 1, 1};
        const Value average = avg_pool(v[0], options);
        options.count_include_pad = false;
        return std::vector{pooled.values, pooled.indices, average, avg_pool(v[0], options)};
      });
    };
    for (const auto& [src, options] : cases) {
      INFO(src.str() << " " << options.str() << " on " << device->info().id);
      Array x = integers(src, 1);
      const std::vector<Tensor> alone = by("cpu", x, options), shared = by("gpu", x, options);
      for (std::size_t k = 0; k < alone.size(); ++k) CHECK(difference(shared[k], alone[k]) == "");
      x.values[x.values.size() / 2] = std::nan("");
      x.values[x.values.size() / 2 + 1] = std::nan("");
      CHECK(difference(by("gpu", x, options)[1], by("cpu", x, options)[1]) == "");
    }
  }
}

}  // namespace concord::test
