// Times what a launch costs the host, by the memories that its kernel uses, on one device:
//
//   bench_launches DEVICE
//
// Prints CSV, a line for each number of memories: memories, microseconds of the host where the kernel receives one
// memory and finds the others from it (CONCORD_DEBUG=memories=one), and where it receives each. The kernel checks
// tensors of 8 numbers for finite values. A figure is the least of 200 rounds of 16 launches.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/device/device.hpp"
#include "concord/ops/all_finite.hpp"

namespace {

using namespace concord;
using Clock = std::chrono::steady_clock;

/// Microseconds of the host for a launch that checks so many tensors.
double microseconds(Device& device, std::size_t tensors) {
  constexpr int kRounds = 200, kLaunches = 16;
  const ops::AllFinite op(std::vector<std::string>(tensors, "x"));
  const std::vector<TensorSpec> inputs(tensors, {DType::f32, {8}});
  const KernelRequest request{&op, inputs, std::vector<Layout>(tensors), op.infer(inputs)};
  const PreparedKernel prepared = device.prepare(request);
  std::vector<BufferPtr> buffers;
  std::vector<Operand> operands;
  for (std::size_t i = 0; i <= tensors; ++i) {
    buffers.push_back(device.allocate(32));
    device.fill(*buffers.back(), 0, 32, 0);
    operands.push_back({buffers.back().get(), 0});
  }
  const BufferPtr workspace = device.allocate(std::max<std::size_t>(prepared.kernel->workspace(), 4));
  const std::span<const Operand> all = operands;
  const auto launch = prepared.kernel->bind(all.first(tensors), all.last(1), {workspace.get(), 0});
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kLaunches; ++i) launch->enqueue();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count() / kLaunches);
    device.finish();
  }
  return best * 1e6;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: bench_launches DEVICE\n");
    return 2;
  }
  try {
    const DevicePtr device = Device::open(arguments[1]);
    fmt::print("memories,one_us,each_us\n");
    for (const std::size_t tensors : {1, 2, 5, 14, 30, 62}) {
      std::vector<double> times;
      for (const char* const memories : {"one", "each"}) {
        setenv("CONCORD_DEBUG", fmt::format("memories={}", memories).c_str(), 1);
        times.push_back(microseconds(*device, tensors));
      }
      fmt::print("{},{:.2f},{:.2f}\n", tensors + 2, times[0], times[1]);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_launches: {}\n", error.what());
    return 1;
  }
  return 0;
}
