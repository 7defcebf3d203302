// Kernels on images that lie channels-last, against those on row-major ones.
#include "concord/opencl/formula/channels_last.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "concord/opencl/device.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "opencl/context_of.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// Errors in parts of the largest number.
void check_near(const std::vector<Tensor>& results, const std::vector<Tensor>& expected, double tolerance) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Array got = to_array(results[i]), right = to_array(expected[i]);
    double error = 0, largest = 0;
    for (std::size_t k = 0; k < got.values.size(); ++k) {
      error = std::max(error, std::abs(got.values[k] - right.values[k]));
      largest = std::max(largest, std::abs(right.values[k]));
    }
    INFO("result " << i << ", largest " << largest);
    CHECK(error <= tolerance * largest);
  }
}

void check_same(const std::vector<Input>& inputs, const Build& build, double tolerance,
                const std::set<std::string>& kernels) {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      std::set<std::string> taken;
      const std::vector<Tensor> results =
          run(std::make_shared<OfferingDevice>(device, taken), inputs, build, {.precision = precision});
      const std::vector<Tensor> expected = run(device, inputs, build);
      CHECK(taken == kernels);
      check_near(results, expected, tolerance);
    }
  }
}

std::vector<Value> with_gradients(const Value& result, const Value& seed, const std::vector<Value>& inputs) {
  std::vector<Value> results{result};
  const std::vector<Value> gradients = gradient(sum(result * seed), inputs);
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

}  // namespace

TEST_CASE("channels-last: batch normalisation, its epilogue and its gradient", "[opencl][channels_last]") {
  const auto [way, kernel] = GENERATE(std::pair("groups", "channels-last"), std::pair("resident", "resident"));
  INFO(way);
  const DebugOption option("batch_norm", way);
  // 24 channels are no power of two of blocks; 136 have several parts, more than one group of channels, and more rows
  // than are kept; of 64, warps have whole rows.
  const Shape small = way == std::string_view("groups") ? Shape{2, 24, 5, 7} : Shape{4, 64, 30, 31};
  for (const Shape& shape : {small, Shape{3, 136, 40, 33}}) {
    const Shape channels{shape[1]};
    check_same(
        {{normal(shape, 1, 2)}, {uniform(channels, 2, 0.5, 2)}, {normal(channels, 3)}, {normal(shape, 4)}},
        [](const std::vector<Value>& x) {
          // The gradient of the sum is an epilogue of the norm's.
          const Value y = tanh(batch_norm(x[0], x[1], x[2]).dst + x[3]) + x[0];
          return with_gradients(y, x[3], {x[0], x[1], x[2]});
        },
        0.02,
        {std::string("batch_norm ") + kernel, std::string("batch_norm_backward ") + kernel, "pointwise channels-last"});
  }
}

TEST_CASE("channels-last: pointwise with numbers by channel, by image and single ones", "[opencl][channels_last]") {
  check_same({{normal({2, 16, 3, 5}, 1)},
              {normal({16, 1, 1}, 2)},
              {normal({2, 16, 1, 1}, 3)},
              {normal({2, 1, 1, 1}, 4)},
              {normal({1}, 5)}},
             [](const std::vector<Value>& x) { return std::vector{tanh(x[0] * x[1] + x[2]) * x[3] + x[4]}; }, 0.01,
             {"pointwise channels-last"});
}

TEST_CASE("channels-last: max pooling and its gradient", "[opencl][channels_last]") {
  struct Window {
    std::int64_t kernel, stride, padding, dilation;
  };
  for (const Window w : {Window{2, 2, 0, 1}, Window{3, 2, 1, 1}, Window{3, 1, 1, 1}, Window{2, 1, 0, 2}}) {
    // Whole numbers have ties, of which the first place wins.
    check_same({{integers({2, 16, 9, 8}, 1)}},
               [w](const std::vector<Value>& x) {
                 const Value y = max_pool2d(x[0], {.kernel = {w.kernel, w.kernel},
                                                   .stride = {w.stride, w.stride},
                                                   .padding = {w.padding, w.padding},
                                                   .dilation = {w.dilation, w.dilation}});
                 const std::vector<Value> gradients = gradient(sum(y), std::vector{x[0]});
                 return std::vector{y, gradients[0]};
               },
               0, {"max_pool channels-last", "max_pool_backward channels-last"});
  }
}

TEST_CASE("channels-last: average pooling and its gradient", "[opencl][channels_last]") {
  const std::vector<ops::PoolOptions> windows = {
      AvgPool2dOptions{.kernel = {2, 2}},
      AvgPool2dOptions{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}},
      AvgPool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false},
      AvgPool2dOptions{.kernel = {3, 2}, .stride = {2, 3}, .ceil_mode = true},
      AvgPool2dOptions{.kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}, .divisor_override = 5},
      AvgPool2dOptions{.kernel = {9, 6}, .stride = {1, 1}},
      {.adaptive = {1, 4, 3}},
  };
  for (const std::int64_t channels : {8, 24, 136}) {
    for (const ops::PoolOptions& options : windows) {
      INFO(options.str());
      check_same({{normal({2, channels, 9, 8}, 1)}},
                 [&](const std::vector<Value>& x) {
                   const Value y = avg_pool(x[0], options);
                   return with_gradients(y, y, {x[0]});
                 },
                 0.015, {"avg_pool channels-last", "avg_pool_backward channels-last", "pointwise channels-last"});
    }
  }
}

namespace {

// Blocks of channels that fill groups, and that leave lanes idle; few places, and so many that groups share them.
const std::vector<Shape> kImages = {{3, 8, 5, 7}, {2, 24, 9, 8}, {2, 136, 7, 7}, {1, 8, 70, 71}, {1, 136, 31, 30}};

}  // namespace

TEST_CASE("channels-last: global average pooling, whose gradient is in the formulas that read it",
          "[opencl][channels_last]") {
  for (const Shape& shape : kImages) {
    INFO(shape.str());
    // As squeeze and excitation.
    check_same({{normal(shape, 1)}, {normal(shape, 2)}},
               [](const std::vector<Value>& x) {
                 const Value image = tanh(x[0]);
                 return with_gradients(image * sigmoid(global_avg_pool2d(image)), x[1], {x[0]});
               },
               0.015,
               {"avg_pool global channels-last", "pointwise channels-last", "reduce_sum of images channels-last"});
    check_same({{normal(shape, 1)}},
               [](const std::vector<Value>& x) {
                 const Shape& s = x[0].shape();
                 return std::vector{avg_pool2d(x[0], {.kernel = {s[2], s[3]}, .divisor_override = 3})};
               },
               0.01, {"avg_pool global channels-last"});
  }
}

TEST_CASE("channels-last: sums over the places of each image and channel", "[opencl][channels_last]") {
  for (const Shape& shape : kImages) {
    INFO(shape.str());
    check_same({{integers(shape, 1)}},
               [](const std::vector<Value>& x) {
                 return std::vector{sum(x[0], {2, 3}), sum(x[0], {2, 3}, true)};
               },
               0, {"reduce_sum of images channels-last"});
  }
}

TEST_CASE("channels-last: channels and images side by side, and cut again", "[opencl][channels_last]") {
  check_same({{integers({2, 8, 3, 5}, 1)}, {integers({2, 24, 3, 5}, 2)}, {integers({2, 16, 3, 5}, 3)}},
             [](const std::vector<Value>& x) {
               const Value all = concat({x[0], x[1], x[2]}, 1), twice = concat({all, all}, 0);
               return std::vector{all, slice(all, 1, 8, 32), twice, slice(twice, 0, 1, 3)};
             },
             0, {"concat channels-last", "slice channels-last"});
}

TEST_CASE("channels-last: a slice is columns of what it is cut from", "[opencl][channels_last]") {
  // Read by an expression, by an epilogue, by kernels that want an image of their own or fp32.
  const DebugOption option("batch_norm", "groups");
  check_same({{normal({2, 40, 5, 7}, 1)}, {normal({2, 24, 5, 7}, 2)}, {uniform({24}, 3, 0.5, 2)}, {normal({24}, 4)}},
             [](const std::vector<Value>& x) {
               const Value part = slice(x[0] * 2.0F, 1, 8, 32);
               return std::vector{part * x[1], batch_norm(x[1], x[2], x[3]).dst + part,
                                  batch_norm(part, x[2], x[3]).dst, cumsum(part, 1), sum(part, {0, 2, 3})};
             },
             0.02, {"pointwise channels-last", "batch_norm channels-last", "reduce_sum channels-last"});
}

TEST_CASE("channels-last: more images side by side than a launch takes", "[opencl][channels_last]") {
  std::vector<Input> inputs;
  for (unsigned k = 0; k < 35; ++k) inputs.push_back({integers({2, 8 + 8 * (k % 3), 3, 5}, k)});
  check_same(inputs, [](const std::vector<Value>& x) { return std::vector{concat(x, 1)}; }, 0,
             {"concat channels-last"});
}

TEST_CASE("channels-last: sums by channel", "[opencl][channels_last]") {
  check_same({{integers({3, 40, 9, 11}, 1)}},
             [](const std::vector<Value>& x) {
               return std::vector{sum(x[0], {0, 2, 3})};
             },
             0, {"reduce_sum channels-last"});
}

TEST_CASE("channels-last: sums by channel of a formula", "[opencl][channels_last]") {
  // By element, by channel, and by image and channel.
  check_same({{integers({3, 40, 9, 11}, 1)},
              {integers({3, 40, 9, 11}, 2)},
              {integers({40, 1, 1}, 3)},
              {integers({3, 40, 1, 1}, 4)}},
             [](const std::vector<Value>& x) {
               return std::vector{sum(x[0] * x[1], {0, 2, 3}), sum(x[2] - x[0] * x[3], {0, 2, 3})};
             },
             0, {"reduce_sum channels-last"});
}

TEST_CASE("convolutions in 16 bits, whose images may lie channels-last", "[opencl][channels_last]") {
  struct Geometry {
    Shape src, weights;
    Conv2dOptions options;
  };
  // Large enough to be worth the units. Strides with phases, of few images all in one launch, and places that no tap
  // reaches; few channels, whose lines are unrolled; k that is cut.
  const std::vector<Geometry> geometries = {
      {{4, 64, 28, 28}, {96, 64, 3, 3}, {.padding = {1, 1}}},
      {{16, 64, 29, 30}, {72, 64, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{24, 128, 28, 28}, {256, 128, 1, 1}, {.stride = {2, 2}}},
      {{1, 256, 15, 14}, {512, 256, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{8, 128, 28, 28}, {256, 128, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{16, 128, 28, 28}, {256, 128, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{2, 64, 56, 55}, {128, 64, 3, 3}, {.stride = {2, 1}, .padding = {1, 1}}},
      {{2, 64, 45, 29}, {128, 64, 5, 3}, {.stride = {3, 1}, .padding = {2, 0}}},
      {{2, 512, 7, 7}, {512, 512, 3, 3}, {.padding = {1, 1}}},
      {{4, 40, 20, 20}, {136, 40, 5, 5}, {.padding = {4, 4}, .dilation = {2, 2}}},
      {{16, 3, 65, 70}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {{32, 3, 67, 67}, {64, 3, 11, 11}, {.stride = {4, 4}, .padding = {2, 2}}},
      {{24, 12, 30, 31}, {64, 12, 3, 3}, {.padding = {1, 1}}},
  };
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    const bool has_units = std::ranges::find(device->info().precisions, "bf16") != device->info().precisions.end();
    for (const Geometry& g : has_units ? geometries : std::vector{geometries.front()}) {
      const Build build = [&](const std::vector<Value>& x) {
        const Value y = conv2d(x[0], x[1], g.options) * x[2] + x[3];
        return with_gradients(y * y, y, {x[0], x[1], x[2]});
      };
      Graph shapes;
      const Shape dst =
          conv2d(shapes.input("src", {DType::f32, g.src}), shapes.input("weights", {DType::f32, g.weights}), g.options)
              .shape();
      const std::vector<Input> inputs{
          {normal(g.src, 1)}, {normal(g.weights, 2, 0.02)}, {normal({g.weights[0], 1, 1}, 3)}, {normal(dst, 4)}};
      const std::vector<Tensor> expected = run(device, inputs, build);
      for (const Precision precision : {Precision::bf16, Precision::fp16}) {
        INFO(g.src.str() << " by " << g.weights.str() << ", " << name_of(precision) << " on " << device->info().id);
        std::set<std::string> taken;
        const DevicePtr noting = std::make_shared<OfferingDevice>(device, taken, false);
        check_near(run(noting, inputs, build, {.precision = precision}), expected, 0.03);
        opencl::Context& context = context_of(device);
        CHECK(taken.empty() != opencl::find_gemm_implementation("tma")->device_refusal(context, precision).empty());
      }
    }
  }
}

TEST_CASE("channels-last: depthwise convolutions and their gradients", "[opencl][channels_last]") {
  struct Geometry {
    std::int64_t kernel, stride, padding;
    Shape src = {2, 24, 11, 14};
  };
  // The last one has several segments of rows, and more pairs of channels than a group.
  for (const Geometry& g : {Geometry{3, 1, 1}, Geometry{3, 2, 1}, Geometry{5, 2, 2}, Geometry{7, 1, 3},
                            Geometry{2, 1, 0}, Geometry{3, 1, 1, {1, 72, 37, 9}}}) {
    const std::int64_t channels = g.src[1];
    check_same(
        {{normal(g.src, 1)}, {normal({channels, 1, g.kernel, g.kernel}, 2)}, {normal({channels, 1, 1}, 3)}},
        [g, channels](const std::vector<Value>& x) {
          // The slope of relu is an epilogue of the data gradient.
          const Value y =
              conv2d(relu(x[0]), x[1],
                     {.stride = {g.stride, g.stride}, .padding = {g.padding, g.padding}, .groups = channels});
          return with_gradients(y + x[2], y, {x[0], x[1]});
        },
        0.03,
        {"conv2d depthwise columns",
         g.kernel == 7 ? "conv2d_backward_data depthwise columns" : "conv2d_backward_data depthwise channels-last",
         "conv2d_backward_weights depthwise columns", "pointwise channels-last"});
  }
}

TEST_CASE("channels-last: what the kernels do not serve is row-major as before", "[opencl][channels_last]") {
  // An operand of another kind; a sum over other axes; channels that are no whole blocks.
  check_same({{integers({2, 8, 3, 5}, 1)}, {integers({1, 8, 3, 5}, 2)}, {integers({2, 9, 3, 5}, 3)}},
             [](const std::vector<Value>& x) {
               return std::vector{x[0] + x[1], sum(x[0], {1}), concat({x[0], x[2]}, 1), slice(x[0], 1, 1, 5)};
             },
             0, {});
}

TEST_CASE("channels-last: a trace counts the bytes as they lie", "[opencl][channels_last]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    std::set<std::string> taken;
    Graph graph;
    const Tensor image(DType::f32, {2, 16, 3, 5});
    const Value y = tanh(graph.input("x", image.spec()));
    Program program =
        compile(graph, std::vector{y}, std::make_shared<Variables>(std::make_shared<OfferingDevice>(device, taken), 1),
                {.precision = Precision::bf16});
    program.write("x", image);
    const std::vector<TraceEntry> entries = program.run_traced();
    REQUIRE(entries.size() == 2);
    const auto elements = static_cast<double>(image.shape().elements());
    CHECK(entries[0].op == "reorder");
    CHECK(entries[0].cost.bytes == elements * (4 + 2));
    CHECK(entries[1].kernel == "pointwise channels-last");
    CHECK(entries[1].cost.bytes == elements * (2 + 2));
  }
}

TEST_CASE("channels-last: reorders keep infinities and NaN, and round to the nearest", "[opencl][channels_last]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> odd{infinity, -infinity, 0.0F, -0.0F, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1e-3F, -3.0F};
  // To the nearest of 8 bits, ties to even.
  const std::vector<float> nearest{infinity, -infinity, 0.0F, -0.0F, 1.0F, 1 + 0x1p-6F, 0x1.06p-10F, -3.0F};
  Tensor values(DType::f32, {1, 8, 1, 2});
  for (std::size_t c = 0; c < 8; ++c) {
    values.values<float>()[2 * c] = odd[c];
    values.values<float>()[2 * c + 1] = std::bit_cast<float>(0x7fffffffU);
  }
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    const Layout last = opencl::channels_last(values.spec(), DType::bf16);
    const BufferPtr rows = device->allocate(64), packed = device->allocate(32);
    device->write(*rows, 0, values.bytes());
    const Operand row_operand{rows.get(), 0}, packed_operand{packed.get(), 0};
    device->prepare_reorder(values.spec(), nullptr, last)->bind({&row_operand, 1}, {&packed_operand, 1}, {})->enqueue();
    device->fill(*rows, 0, 64, 0);
    device->prepare_reorder(values.spec(), last, nullptr)->bind({&packed_operand, 1}, {&row_operand, 1}, {})->enqueue();
    device->read(*rows, 0, values.bytes());
    for (std::size_t c = 0; c < 8; ++c) {
      CHECK(std::bit_cast<std::uint32_t>(values.values<float>()[2 * c]) == std::bit_cast<std::uint32_t>(nearest[c]));
      CHECK(std::isnan(values.values<float>()[2 * c + 1]));
    }
  }
}

}  // namespace concord::test
