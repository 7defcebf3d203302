// Convolutions to few channels, such as the last one of a segmentation: all passes read and write the image with many
// channels as it lies, channels-last in 16 bits, and leave the other one row-major.
#include <algorithm>
#include <cmath>
#include <random>

#include "concord/graph/graph.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Passes {
  std::vector<Tensor> results;  // dst, diff_src, diff_weights
  std::vector<TraceEntry> entries;
};

Passes run(const DevicePtr& device, Precision precision, std::int64_t outputs, std::int64_t taps) {
  Graph graph;
  const Shape image{4, 64, 192, 160}, weights{outputs, 64, taps, taps}, bias{outputs, 1, 1};
  const Value x = graph.input("x", {DType::f32, image}), w = graph.input("w", {DType::f32, weights});
  const Value b = graph.input("b", {DType::f32, bias});
  const Conv2dOptions options{.padding = {taps / 2, taps / 2}};
  const Value y = conv2d(relu(x), w, options) + b;
  const Value d = graph.input("d", y.spec());
  const std::vector<Value> gradients = concord::gradient(sum(y * d), {x, w});
  Program program = compile(graph, std::vector{y, gradients[0], gradients[1]}, std::make_shared<Variables>(device, 1),
                            {.precision = precision});
  std::minstd_rand random(3);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (const Value& value : {x, w, b, d}) {
    Tensor tensor(DType::f32, value.shape());
    for (float& number : tensor.values<float>()) number = numbers(random);
    program.write(value.name(), tensor);
  }
  Passes passes;
  passes.entries = program.run_traced();
  for (const Value& value : {y, gradients[0], gradients[1]}) passes.results.push_back(program.read(value.name()));
  return passes;
}

/// The largest difference, relative to the largest number.
double farthest_of(const Tensor& found, const Tensor& expected) {
  double largest = 0, farthest = 0;
  for (std::size_t i = 0; i < expected.values<float>().size(); ++i) {
    const double e = expected.values<float>()[i];
    largest = std::max(largest, std::abs(e));
    farthest = std::max(farthest, std::abs(found.values<float>()[i] - e));
  }
  return farthest / largest;
}

}  // namespace

TEST_CASE("convolutions to few channels leave the image with many channels as it lies", "[opencl][conv]") {
  for (const DevicePtr& device : opencl_devices()) {
    if (!opencl::find_gemm_implementation("tma")->device_refusal(context_of(device), Precision::bf16).empty()) continue;
    for (const std::int64_t outputs : {1, 3, 21}) {
      for (const std::int64_t taps : {1, 3}) {
        if (outputs * taps == 1) continue;  // too few multiplications for matrix cores
        CAPTURE(device->info().name, outputs, taps);
        const Passes exact = run(device, Precision::fp32, outputs, taps);
        for (const Precision precision : {Precision::bf16, Precision::fp16}) {
          CAPTURE(name_of(precision));
          const Passes passes = run(device, precision, outputs, taps);
          for (std::size_t i = 0; i < passes.results.size(); ++i) {
            CAPTURE(i);
            CHECK(farthest_of(passes.results[i], exact.results[i]) < 0.02);
          }
          for (const TraceEntry& entry : passes.entries) {
            if (entry.op.starts_with("conv2d")) CHECK_THAT(entry.kernel, contains(" tma "));
          }
        }
      }
    }
  }
}

}  // namespace concord::test
