// A training step on real ranks whose computation is a sleep: what `concord plan` predicts, over the transport that a
// training would use. So more ranks fit on a machine than it has devices.
//
//   concord launch --nodes 2 --rendezvous HOST:PORT --devices cpu -- bench_sleeping_step FILE STEPS
//
// FILE has the lines of schedule.cpp. Rank 0 prints the seconds of each step.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/concord.hpp"

namespace {

using namespace concord;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Bucket {
  double ready = 0;
  std::vector<float> values;
};

int run(const std::string& file, int steps) {
  const collective::GroupPtr group = collective::group_of_process();
  double backward = 0, rest = 0, value = 0;
  std::vector<Bucket> buckets;
  std::ifstream in(file);
  std::string key;
  while (in >> key >> value) {
    if (key == "backward") backward = value;
    if (key == "rest") rest = value;
    if (key != "bucket") continue;
    std::size_t bytes = 0;
    in >> bytes;
    buckets.push_back({value, std::vector<float>(bytes / sizeof(float))});
  }
  for (int i = -1; i < steps; ++i) {  // the first one opens connections
    if (group) group->barrier();
    const Clock::time_point begin = Clock::now();
    const auto sleep_until = [&](double seconds) {
      std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(Seconds(seconds)));
    };
    for (Bucket& bucket : buckets) {
      sleep_until(bucket.ready);
      if (group) group->all_reduce(bucket.values);
    }
    sleep_until(backward);
    if (group) group->barrier();  // the step of the slowest rank
    sleep_until(Seconds(Clock::now() - begin).count() + rest);
    const double seconds = Seconds(Clock::now() - begin).count();
    if (i >= 0 && (!group || group->rank() == 0)) fmt::print("{:.6f}\n", seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_sleeping_step FILE STEPS\n");
    return 2;
  }
  try {
    return run(argv[1], std::atoi(argv[2]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_sleeping_step: {}\n", error.what());
    return 1;
  }
}
