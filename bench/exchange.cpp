// Times the exchange of a training on several devices (train::Exchange) over sizes:
//
//   concord launch --devices opencl:gpu -- bench_exchange [BYTES…]
//
// Without sizes: 64 KiB to 1 GiB. Rank 0 prints one line a size: bytes, microseconds, transport, and microseconds of
// the group's sum in host memory alone. $CONCORD_EXCHANGE chooses the transport.
#include "concord/train/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
    exchange.finish_all();
  }
  device.finish();
  return std::chrono::duration<double>(Clock::now() - begin).count() / sums;
}

double seconds_of_group(collective::Group& group, std::span<float> values, int sums) {
  group.barrier();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < sums; ++i) group.all_reduce(values);
  return std::chrono::duration<double>(Clock::now() - begin).count() / sums;
}

/// How many sums are timed at once: about half a second of them. The same on all ranks.
int sums_in(double seconds, collective::Group& group) {
  constexpr double kTime = 0.5;
  int sums = static_cast<int>(std::clamp(kTime / seconds, 1.0, 50.0));
  group.broadcast(std::as_writable_bytes(std::span(&sums, 1)), 0);
  return sums;
}

int run(std::vector<std::int64_t> sizes) {
  if (sizes.empty()) {
    for (std::int64_t bytes = 64 << 10; bytes <= std::int64_t{1} << 30; bytes *= 4) sizes.push_back(bytes);
  }
  const collective::GroupPtr group = collective::group_of_process();
  if (!group) {
    std::fputs("bench_exchange: start it with concord launch --devices opencl:gpu -- bench_exchange\n", stderr);
    return 2;
  }
  const DevicePtr device = Device::open();
  for (const std::int64_t bytes : sizes) {
    Graph graph;
    add_exchange(graph, bytes / 4);
    train::Exchange exchange(group, std::make_shared<Variables>(device, 0), graph);
    double best = seconds_of(exchange, *device, group, 2);
    int sums = sums_in(best, *group);
    for (int i = 0; i < 5; ++i) best = std::min(best, seconds_of(exchange, *device, group, sums));
    std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
    double least = seconds_of_group(*group, values, 2);
    sums = sums_in(least, *group);
    for (int i = 0; i < 5; ++i) least = std::min(least, seconds_of_group(*group, values, sums));
    if (group->rank() == 0) fmt::print("{} {:.1f} {} {:.1f}\n", bytes, best * 1e6, exchange.transport(), least * 1e6);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::int64_t> sizes;
    for (int i = 1; i < argc; ++i) sizes.push_back(std::max<std::int64_t>(4, std::stoll(argv[i])));
    return run(sizes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_exchange: {}\n", error.what());
    return 1;
  }
}
