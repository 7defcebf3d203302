// The gradient of many weights, which the product leaves by taps: the launch that turns it, and both together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

TEST_CASE("a gradient of weights by taps is turned", "[opencl][conv]") {
  using namespace opencl;
  struct Weights {
    std::int64_t o, c, taps;
  };
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    for (const auto& [o, c, taps] : {Weights{5, 64, 9}, Weights{3, 200, 4}, Weights{2, 8, 25}}) {
      CAPTURE(device->info().name, o, c, taps);
      std::vector<float> by_taps(static_cast<std::size_t>(o * c * taps));
      std::iota(by_taps.begin(), by_taps.end(), 0.0F);
      const std::size_t bytes = by_taps.size() * sizeof(float);
      const BufferPtr from = device->allocate(bytes), to = device->allocate(bytes);
      device->write(*from, 0, std::as_bytes(std::span(by_taps)));
      Context& context = context_of(device);
      std::vector<StagedKernel::AnyStage> stages{
          Stage{context.program("conv/turned_gradient.cl", {fmt::format("TAPS={}", taps)}),
                "conv_turn_gradient",
                {PackedArguments{{opencl::input(0), output(0), as_uint(c)}}},
                {size(divide_up(c, 64) * 128), size(o), 1},
                {128, 1, 1}}};
      const StagedKernel kernel(context, "turn", std::move(stages));
      const Operand source{from.get(), 0}, result{to.get(), 0};
      kernel.bind({&source, 1}, {&result, 1}, {})->enqueue();
      std::vector<float> turned(by_taps.size());
      device->read(*to, 0, std::as_writable_bytes(std::span(turned)));
      std::size_t wrong = 0;
      for (std::int64_t i = 0; i < o * c * taps; ++i) {
        const std::int64_t tap = i % taps, channel = i / taps % c, row = i / taps / c;
        wrong += turned[size(i)] != static_cast<float>((row * taps + tap) * c + channel) ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the gradient of many weights is right on matrix cores", "[opencl][conv]") {
  const std::vector<Input> inputs{
      {normal({2, 200, 9, 9}, 1)}, {normal({520, 200, 3, 3}, 2)}, {normal({2, 520, 9, 9}, 3)}};
  const Build build = [](const std::vector<Value>& x) {
    return std::vector{gradient(sum(conv2d(x[0], x[1], {.padding = {1, 1}}) * x[2]), std::vector{x[1]})[0]};
  };
  for (const DevicePtr& device : opencl_devices()) {
    if (!opencl::find_gemm_implementation("tma")->device_refusal(context_of(device), Precision::bf16).empty()) continue;
    INFO(device->info().name);
    const Tensor exact = run(device, inputs, build)[0];
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      const Tensor found = run(device, inputs, build, {.precision = precision})[0];
      double largest = 0, farthest = 0;
      for (std::size_t i = 0; i < exact.values<float>().size(); ++i) {
        largest = std::max(largest, std::abs(double{exact.values<float>()[i]}));
        farthest = std::max(farthest, std::abs(double{found.values<float>()[i]} - exact.values<float>()[i]));
      }
      CHECK(farthest < 0.02 * largest);
    }
  }
}

}  // namespace concord::test
