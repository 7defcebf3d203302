// Times the exchange of a training on several devices (train::Exchange) over sizes:
//
//   concord launch --devices opencl:gpu -- bench_exchange
//
// Rank 0 prints one line a size: bytes, microseconds, transport. $CONCORD_EXCHANGE chooses the transport.
#include "concord/train/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "concord/concord.hpp"

namespace {

using namespace concord;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostOfOne = std::int64_t{8} << 20;  // floats of a variable

/// A graph that exchanges variables of so many floats together.
void add_exchange(Graph& graph, std::int64_t floats) {
  for (std::int64_t begin = 0; begin < floats; begin += kMostOfOne) {
    const Shape shape{std::min(kMostOfOne, floats - begin)};
    const Value variable =
        graph.variable(std::make_shared<Variable>(fmt::format("exchanged{}", begin), TensorSpec{DType::f32, shape},
                                                  Initializer{}, false, Tensor{}, VariableRole::transient));
    graph.exchange(variable, variable + 1.0F);
  }
}

double seconds_of(train::Exchange& exchange, Device& device, const collective::GroupPtr& group, int sums) {
  group->barrier();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < sums; ++i) {
    for (std::size_t bucket = 0; bucket < exchange.buckets(); ++bucket) exchange.begin(bucket);
    exchange.finish();
  }
  device.finish();
  return std::chrono::duration<double>(Clock::now() - begin).count() / sums;
}

int run() {
  const collective::GroupPtr group = collective::group_of_process();
  if (!group) {
    std::fputs("bench_exchange: start it with concord launch --devices opencl:gpu -- bench_exchange\n", stderr);
    return 2;
  }
  const DevicePtr device = Device::open();
  for (std::int64_t bytes = 64 << 10; bytes <= std::int64_t{1} << 30; bytes *= 4) {
    Graph graph;
    add_exchange(graph, bytes / 4);
    train::Exchange exchange(group, std::make_shared<Variables>(device, 0), graph);
    const int sums = bytes > (64 << 20) ? 10 : 50;
    double best = seconds_of(exchange, *device, group, 3);
    for (int i = 0; i < 5; ++i) best = std::min(best, seconds_of(exchange, *device, group, sums));
    if (group->rank() == 0) fmt::print("{} {:.1f} {}\n", bytes, best * 1e6, exchange.transport());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_exchange: {}\n", error.what());
    return 1;
  }
}
