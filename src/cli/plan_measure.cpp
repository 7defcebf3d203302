// Exchanges of 64 KiB to 64 MiB, each several times.
#include "concord/cli/plan_measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "concord/cli/command.hpp"
#include "concord/cli/options.hpp"
#include "concord/collective/group.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/median.hpp"
#include "concord/train/exchange.hpp"

namespace concord::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLeast = std::int64_t{64} << 10, kMost = std::int64_t{64} << 20;
constexpr std::int64_t kOneBucket = std::int64_t{32} << 20;
constexpr int kTimes = 12, kLeastTimes = 4;
constexpr double kSeconds = 4;  // for one size, on a slow link

/// A graph that exchanges so many bytes.
void add_exchange(Graph& graph, std::int64_t bytes) {
  for (std::int64_t begin = 0; begin < bytes; begin += kOneBucket) {
    const Shape shape{std::min(kOneBucket, bytes - begin) / 4};
    const Value variable =
        graph.variable(std::make_shared<Variable>(fmt::format("exchanged{}", begin), TensorSpec{DType::f32, shape},
                                                  Initializer{}, false, Tensor{}, VariableRole::transient));
    graph.exchange(variable, variable + 1.0F);
  }
}

/// The median time of one exchange, as a step has it; the same on all ranks.
double seconds_of(train::Exchange& exchange, Device& device, collective::Group& group) {
  std::vector<double> times;
  double all = 0;
  for (int i = 0; i < kTimes && (i < kLeastTimes || all < kSeconds); ++i) {
    group.barrier();
    const Clock::time_point begin = Clock::now();
    for (std::size_t bucket = 0; bucket < exchange.buckets(); ++bucket) exchange.begin(bucket);
    exchange.finish_all();
    device.finish();
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    group.broadcast(std::as_writable_bytes(std::span(&seconds, 1)), 0);
    if (i > 0) times.push_back(seconds);  // the first one opens connections
    all += seconds;
  }
  exchange.require_all_ranks();
  return median(times);
}

}  // namespace

void measure_links(const std::string& file, const RanksOptions& ranks) {
  require_writable(file);
  const std::string selector = ranks.device_of_rank();
  const collective::GroupPtr group = collective::group_of_process();
  CONCORD_CHECK(group, ArgumentError,
                "--measure needs at least two ranks: name their devices with --devices, or start it with a launcher");
  const DevicePtr device = Device::open(selector);
  std::string text = "bytes,ranks,seconds,transport\n";
  for (std::int64_t bytes = kLeast; bytes <= kMost; bytes *= 4) {
    Graph graph;
    add_exchange(graph, bytes);
    train::Exchange exchange(group, std::make_shared<Variables>(device, 0), graph);
    const double seconds = seconds_of(exchange, *device, *group);
    text += fmt::format("{},{},{:.9f},{}\n", bytes, group->size(), seconds, exchange.transport());
    if (group->rank() == 0) {
      say(fmt::format("{:>9} bytes over {} ranks by {}: {:.1f} us", bytes, group->size(), exchange.transport(),
                      seconds * 1e6));
    }
  }
  if (group->rank() == 0) write_file_atomically(file, std::as_bytes(std::span(text)));
}

}  // namespace concord::cli
