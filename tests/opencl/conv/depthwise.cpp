// The kernels of depthwise convolution for GPUs against those that compute value by value, on the same device.
#include <fmt/format.h>

#include "concord/compile/program.hpp"
#include "concord/ops/conv.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Geometry {
  Shape src, weights;
  Conv2dOptions options;
  [[nodiscard]] ops::ConvOptions sizes_options() const { return options; }
  [[nodiscard]] Shape dst() const {
    const ops::ConvSizes s = ops::conv_sizes(src, weights, options);
    return {s.n, s.o, s.oh, s.ow};
  }
  [[nodiscard]] std::string str() const {
    return fmt::format("{} * {} {}", src.str(), weights.str(), sizes_options().str());
  }
};

/// `multiplier` outputs a channel.
Geometry image(const Shape& src, std::array<std::int64_t, 2> kernel, Conv2dOptions options,
               std::int64_t multiplier = 1) {
  options.groups = src[1];
  return {src, {src[1] * multiplier, 1, kernel[0], kernel[1]}, options};
}

/// Of src, weights and diff_dst: dst, diff_src, diff_weights.
std::vector<Value> passes(const Geometry& g, const std::vector<Value>& x) {
  Graph& graph = x[0].graph();
  return {conv2d(x[0], x[1], g.options),
          graph.add(std::make_shared<ops::ConvBackwardData>(g.sizes_options(), g.src), {x[2], x[1]}),
          graph.add(std::make_shared<ops::ConvBackwardWeights>(g.sizes_options(), g.weights), {x[0], x[2]})};
}

/// The OpenCL devices, opened to run the kernels for this kind of device.
std::vector<DevicePtr> devices_as(const char* kind) {
  const DebugOption kernels("kernels", kind);
  std::vector<DevicePtr> found;
  for (const DevicePtr& device : opencl_devices()) found.push_back(Device::open(device->info().id));
  return found;
}

/// A device with the kernels for each kind. Opened by each test: drivers want their devices closed before they unload.
struct Pair {
  DevicePtr gpu, cpu;
};
std::vector<Pair> open_pairs() {
  const std::vector<DevicePtr> gpus = devices_as("gpu"), cpus = devices_as("cpu");
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < gpus.size(); ++i) pairs.push_back({gpus[i], cpus[i]});
  return pairs;
}

/// The kernels that compute the three passes. The operands are assigned, else they would be computed but once,
/// untraced.
std::vector<std::string> kernels_of(const DevicePtr& device, const Geometry& g) {
  Graph graph;
  std::vector<Value> x;
  for (const Shape& shape : {g.src, g.weights, g.dst()}) {
    x.push_back(operand(graph, x.size(), Tensor(DType::f32, shape)));
    graph.assign(x.back(), x.back() + 1.0F);
  }
  const auto program = std::make_shared<Program>(compile(graph, passes(g, x), std::make_shared<Variables>(device, 7)));
  keep(program);
  std::vector<std::string> names;
  for (const TraceEntry& entry : program->run_traced()) {
    if (entry.op.starts_with("conv2d")) names.push_back(entry.kernel);
  }
  REQUIRE(names.size() == 3);
  return names;
}

void check_equal(const std::vector<Pair>& pairs, const Geometry& g) {
  const std::vector<Input> inputs{{integers(g.src, 1)}, {integers(g.weights, 2)}, {integers(g.dst(), 3)}};
  const Build build = [&](const std::vector<Value>& x) { return passes(g, x); };
  for (const Pair& pair : pairs) {
    INFO(g.str() << " on " << pair.gpu->info().id);
    const std::vector<Tensor> results = run(pair.gpu, inputs, build), expected = run(pair.cpu, inputs, build);
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]) == "");
  }
}

bool are_strips(const std::vector<Pair>& pairs, const Geometry& g) {
  for (const Pair& pair : pairs) {
    for (const std::string& name : kernels_of(pair.gpu, g)) {
      if (name.find("depthwise, strips of") == std::string::npos) return false;
    }
  }
  return true;
}

/// Kernel sizes and strides of one axis with others of the other; planes with and without a rest of strips.
std::vector<Geometry> small_images() {
  std::vector<Geometry> list;
  for (const std::int64_t kernel : {1, 2, 3, 5, 7}) {
    const std::int64_t other = 1 + kernel % 3, padding = kernel / 2;
    list.push_back(
        image({3, 2, 8, 7}, {kernel, other + 1}, {.stride = {2, 1}, .padding = {padding, other / 2}}, 1 + kernel % 2));
    list.push_back(image({2, 3, 7, 10}, {other + 1, kernel},
                         {.stride = {1, 2}, .padding = {other, kernel}, .padding_after = {{0, padding}}}));
  }
  for (const std::int64_t stride : {1, 2}) {
    list.push_back(image({2, 3, 9, 12}, {5, 5}, {.stride = {stride, stride}}));
    list.push_back(image({2, 3, 8, 9}, {3, 3}, {.stride = {stride, stride}, .padding = {1, 1}}, 2));
  }
  return list;
}

const std::vector<Geometry> kEdges = {
    image({1, 2, 1, 40}, {1, 3}, {.padding = {0, 1}}),                    // lines
    image({2, 3, 40, 1}, {3, 1}, {.stride = {2, 1}, .padding = {1, 0}}),  // columns
    image({1, 5, 2, 2}, {7, 7}, {.padding = {3, 3}}, 3),                  // the kernel covers the image
    image({2, 2, 5, 5}, {3, 3}, {.stride = {2, 2}, .padding = {9, 8}}),   // windows of padding alone
    image({1, 2, 8, 8}, {1, 2}, {.stride = {2, 2}}),                      // the stride passes over pixels
    image({1, 2, 6, 6}, {2, 2}, {.stride = {2, 1}, .padding = {0, 1}, .padding_after = {{7, 0}}}, 2),
};

/// Enough columns for the highest strips on a device of many units.
const std::vector<Geometry> kLarge = {
    image({8, 160, 17, 111}, {3, 3}, {.padding = {1, 1}}),
    image({8, 160, 33, 220}, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}),
    image({16, 1280, 7, 7}, {3, 3}, {.padding = {1, 1}}),
};

}  // namespace

TEST_CASE("depthwise kernels for GPUs give the whole numbers of the plain ones", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  for (const Geometry& g : small_images()) check_equal(pairs, g);
  for (const Geometry& g : kEdges) check_equal(pairs, g);
}

TEST_CASE("depthwise kernels for GPUs in strips of several rows", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  // A device of few units has enough columns here.
  check_equal(pairs, image({4, 16, 16, 33}, {3, 3}, {.padding = {1, 1}}));
  check_equal(pairs, image({4, 16, 15, 34}, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, 2));
  check_equal(pairs, image({4, 64, 7, 7}, {5, 5}, {.padding = {2, 2}}));
  check_equal(pairs, image({4, 64, 13, 14}, {5, 3}, {.stride = {2, 1}, .padding = {2, 1}}));
}

TEST_CASE("depthwise kernels for GPUs on large batches", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  for (const Geometry& g : kLarge) check_equal(pairs, g);
}

TEST_CASE("depthwise kernels for GPUs serve small kernels of images", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  CHECK(are_strips(pairs, image({2, 3, 9, 12}, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}})));
  CHECK(are_strips(pairs, image({2, 3, 9, 12}, {7, 7}, {.padding = {3, 3}})));
  for (const Geometry& g : {image({2, 3, 9, 12}, {3, 3}, {.dilation = {2, 2}}),
                            image({2, 3, 9, 12}, {3, 3}, {.stride = {3, 1}}), image({2, 3, 9, 12}, {8, 3}, {})}) {
    if (!pairs.empty()) CHECK_FALSE(are_strips(pairs, g));
    check_equal(pairs, g);
  }
}

TEST_CASE("depthwise kernels for GPUs apply an epilogue", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  for (const Geometry& g : {image({2, 3, 9, 12}, {3, 3}, {.padding = {1, 1}}),
                            image({2, 3, 9, 12}, {5, 3}, {.stride = {2, 2}, .padding = {1, 1}}, 2),
                            image({4, 64, 7, 9}, {3, 3}, {.padding = {1, 1}})}) {
    const std::vector<Input> inputs{
        {integers(g.src, 1)},   {integers(g.weights, 2)},           {integers({g.weights[0], 1, 1}, 3)},
        {integers(g.dst(), 4)}, {integers({g.src[0], 1, 1, 1}, 5)}, {integers({g.src[1], 1, 1}, 6)}};
    const Build build = [&](const std::vector<Value>& x) {
      const Value diff_src =
          x[0].graph().add(std::make_shared<ops::ConvBackwardData>(g.sizes_options(), g.src), {x[3], x[1]});
      return std::vector{relu(conv2d(x[0], x[1], g.options) + x[2]) * x[4] - x[3], relu(diff_src + x[5]) * x[4] - x[0]};
    };
    for (const Pair& pair : pairs) {
      for (const DevicePtr& device : {pair.gpu, pair.cpu}) {
        INFO(g.str() << " on " << device->info().id);
        const std::vector<Tensor> fused = run(device, inputs, build),
                                  apart = run(device, inputs, build, {.fuse = false});
        for (std::size_t k = 0; k < fused.size(); ++k) CHECK(difference(fused[k], apart[k]) == "");
      }
    }
  }
}

TEST_CASE("the gradient of depthwise weights keeps long sums exact", "[opencl][conv]") {
  const std::vector<Pair> pairs = open_pairs();
  const Geometry g = image({6, 2, 112, 112}, {3, 3}, {.padding = {1, 1}});
  const Array src = uniform(g.src, 1, 0, 1), diff_dst = uniform(g.dst(), 2, 0, 1);
  Array expected(g.weights);
  for (std::int64_t tap = 0; tap < 9; ++tap) {
    for (std::int64_t i = 0; i < g.src.elements(); ++i) {
      const std::int64_t channel = i / (112 * 112), y = i / 112 % 112, x = i % 112;
      const std::int64_t from_y = y + tap / 3 - 1, from_x = x + tap % 3 - 1;
      if (from_y < 0 || from_y >= 112 || from_x < 0 || from_x >= 112) continue;
      expected.at({channel % 2, 0, tap / 3, tap % 3}) +=
          diff_dst.values[static_cast<std::size_t>(i)] *
          src.values[static_cast<std::size_t>((channel * 112 + from_y) * 112 + from_x)];
    }
  }
  for (const Pair& pair : pairs) {
    const Array weights = to_array(run(pair.gpu, {{src}, {diff_dst}}, [&](const std::vector<Value>& x) {
      return std::vector{x[0].graph().add(std::make_shared<ops::ConvBackwardWeights>(g.sizes_options(), g.weights), x)};
    })[0]);
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      CHECK(std::abs(weights.values[i] - expected.values[i]) <= 2e-6 * expected.values[i]);
    }
  }
}

}  // namespace concord::test
