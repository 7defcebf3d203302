// Batch normalisation by work-groups, in one launch and in two, and by runs gives the same numbers, with and without an
// epilogue, on every OpenCL device: what GPUs compute is checked on CPUs too, and the other way round.
#include <cmath>

#include "concord/compile/program.hpp"
#include "concord/ops/normalise.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.values<float>()[i]) - b.values<float>()[i]));
  }
  return largest;
}

void check_ways(const std::vector<Input>& inputs, const Build& build, double tolerance) {
  std::size_t found = 0;
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    ++found;
    const auto by = [&](const char* name) {
      const DebugOption way("batch_norm", name);
      return run(device, inputs, build);
    };
    const std::vector<Tensor> runs = by("runs");
    for (const char* name : {"groups", "whole"}) {
      const std::vector<Tensor> results = by(name), again = by(name);
      for (std::size_t k = 0; k < runs.size(); ++k) {
        INFO("result " << k << " of " << inputs[0].value.shape.str() << " by " << name << " on " << device->info().id);
        CHECK(largest_difference(results[k], runs[k]) <= tolerance);
        CHECK(difference(results[k], again[k]) == "");
      }
    }
  }
  if (found == 0) WARN("skipped: no OpenCL device");
}

// Planes of a multiple of four values or not, one image, planes of one value, one part and several, groups of every
// size, parts that end in a turn; channels that a group holds in a turn or more, and such as it reads again.
const std::vector<Shape> kShapes = {{2, 3, 1, 4},    {3, 5},         {70, 2},         {2, 2, 7, 7},     {5, 3, 9, 9},
                                    {16, 2, 16, 16}, {40, 1, 8, 33}, {9, 3, 24, 24},  {3, 1, 101, 101}, {1, 3, 5, 7},
                                    {6, 2, 1, 1},    {64, 2, 7, 7},  {30, 2, 14, 14}, {40, 2, 28, 28}};

}  // namespace

TEST_CASE("batch_norm and its gradient agree in every way", "[opencl][normalise]") {
  for (const Shape& shape : kShapes) {
    const Shape channels{shape[1]};
    check_ways(
        {{normal(shape, 1)}, {uniform(channels, 2, 0.5, 2)}, {normal(channels, 3)}, {normal(shape, 4)}},
        [](const std::vector<Value>& x) {
          const BatchNormResult y = batch_norm(x[0], x[1], x[2]);
          std::vector<Value> results = gradient(sum(y.dst * x[3]), std::span(x).first(3));
          results.insert(results.end(), {y.dst, y.mean, y.variance});
          return results;
        },
        3e-4);
  }
}

TEST_CASE("batch_norm far from zero agrees in every way", "[opencl][normalise]") {
  for (const Shape& shape : kShapes) {
    Array src = normal(shape, 1);
    for (double& v : src.values) v = static_cast<float>(1000 + v);
    src.values[0] = -3000;  // the value that sums are shifted by is unlike the others
    const Shape channels{shape[1]};
    check_ways(
        {{src}, {uniform(channels, 2, 0.5, 2)}, {normal(channels, 3)}},
        [](const std::vector<Value>& x) { return std::vector{batch_norm(x[0], x[1], x[2]).dst}; }, 1e-3);
  }
}

TEST_CASE("batch_norm applies an epilogue in every way", "[opencl][normalise]") {
  for (const Shape& shape : kShapes) {
    const Shape channels{shape[1]};
    std::vector<std::int64_t> by_image(shape.dims().begin(), shape.dims().end());
    std::fill(by_image.begin() + 2, by_image.end(), 1);
    check_ways(
        {{normal(shape, 1)},
         {uniform(channels, 2, 0.5, 2)},
         {normal(channels, 3)},
         {normal(shape, 4)},
         {normal(Shape(by_image), 5)}},
        [](const std::vector<Value>& x) {
          const BatchNormResult y = batch_norm(x[0], x[1], x[2]);
          const Value diff = gradient(sum(y.dst * x[3]), std::span(x).first(1))[0];
          return std::vector{relu(y.dst * x[4] + x[3]), y.mean + 1.0F, y.variance, relu(diff * x[4] + x[0])};
        },
        3e-4);
  }
}

TEST_CASE("batch_norm in one launch, whose groups meet, is right in every run", "[opencl][channels_last]") {
  const DebugOption option("batch_norm", "resident");
  const Shape shape{16, 72, 30, 31}, channels{72};
  const auto tensor = [](const Array& numbers) {
    return Tensor::of<float>(numbers.shape, std::vector<float>(numbers.values.begin(), numbers.values.end()));
  };
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, shape}), seed = graph.input("seed", {DType::f32, shape});
    const Value scale = graph.input("scale", {DType::f32, channels}),
                shift = graph.input("shift", {DType::f32, channels});
    const BatchNormResult y = batch_norm(x, scale, shift);
    std::vector<Value> results = gradient(sum(y.dst * seed), std::vector{x, scale, shift});
    results.insert(results.end(), {y.dst, y.mean, y.variance});
    std::set<std::string> taken;
    const auto offering = std::make_shared<OfferingDevice>(device, taken);
    Program own = compile(graph, results, std::make_shared<Variables>(offering, 7), {.precision = Precision::bf16});
    CHECK(taken.contains("batch_norm resident"));
    CHECK(taken.contains("batch_norm_backward resident"));
    Program plain = compile(graph, results, std::make_shared<Variables>(device, 7));
    for (unsigned turn = 0; turn < 4; ++turn) {
      for (Program* program : {&own, &plain}) {
        program->write("x", tensor(normal(shape, turn, 1 + turn)));
        program->write("seed", tensor(normal(shape, 100 + turn)));
        program->write("scale", tensor(uniform(channels, turn, 0.5, 2)));
        program->write("shift", tensor(normal(channels, 10 + turn)));
        program->run();
      }
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO("turn " << turn << ", result " << k);
        const Tensor expected = plain.read(results[k]);
        double largest = 0;
        for (const float value : expected.values<float>()) largest = std::max(largest, std::abs(double{value}));
        CHECK(largest_difference(own.read(results[k]), expected) <= 0.02 * largest);
      }
    }
  }
}

TEST_CASE("a group owns a channel of few values", "[opencl][normalise]") {
  struct Images {
    Shape src;
    const char *forward, *backward;
  };
  // Held by both passes; by the forward pass, and read again by the other one; too many values for one group.
  const std::vector<Images> cases = {{{8, 2, 7, 7}, "batch_norm whole", "batch_norm_backward whole"},
                                     {{64, 40, 20, 20}, "batch_norm whole", "batch_norm_backward whole"},
                                     {{32, 2, 64, 64}, "batch_norm", "batch_norm_backward"}};
  for (const DevicePtr& device : opencl_devices_with_groups_of(1024)) {
    const DebugOption kernels("kernels", "gpu");
    const DevicePtr opened = Device::open(device->info().id);
    for (const auto& [src, forward, backward] : cases) {
      INFO(src.str() << " on " << opened->info().id);
      Graph graph;
      const Shape channels{src[1]};
      const std::vector<Value> x{graph.input("x", {DType::f32, src}), graph.input("scale", {DType::f32, channels}),
                                 graph.input("shift", {DType::f32, channels}), graph.input("y", {DType::f32, src})};
      const Value diff = gradient(sum(batch_norm(x[0], x[1], x[2]).dst * x[3]), std::span(x).first(1))[0];
      Program program = compile(graph, std::vector{diff}, std::make_shared<Variables>(opened, 7));
      std::vector<std::string> found;
      for (const TraceEntry& entry : program.run_traced()) {
        if (entry.kernel.starts_with("batch_norm")) found.push_back(entry.kernel);
      }
      CHECK(found == std::vector<std::string>{forward, backward});
    }
  }
}

TEST_CASE("no image lets an unknown way of batch_norm pass", "[opencl][channels_last]") {
  const Shape shape{2, 8, 3, 3}, channels{8};
  const DebugOption option("batch_norm", "residents");
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const bool offers : {false, true}) {
      std::set<std::string> taken;
      CHECK_THROWS_AS(run(std::make_shared<OfferingDevice>(device, taken, offers),
                          {{normal(shape, 1)}, {normal(channels, 2)}, {normal(channels, 3)}},
                          [](const std::vector<Value>& x) { return std::vector{batch_norm(x[0], x[1], x[2]).dst}; },
                          {.precision = Precision::bf16}),
                      ArgumentError);
    }
  }
}

}  // namespace concord::test
