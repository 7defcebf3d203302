// measure: host clock around enqueued runs, the device idle at both ends.
#include "concord/compile/measure.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "concord/core/median.hpp"

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

RunTimes measure(Program& program, const MeasureOptions& options) {
  const auto timed = [&](std::int64_t runs) {
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < runs; ++i) program.run();
    program.device().finish();
    return 1e3 * seconds_since(start);
  };
  constexpr double kSampleMs = 5;
  RunTimes times;
  (void)timed(options.warm_up);
  while (timed(times.runs_a_sample) < kSampleMs && times.runs_a_sample < 256) times.runs_a_sample *= 2;

  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  while (static_cast<std::int64_t>(samples.size()) < options.least || seconds_since(begin) < options.seconds) {
    samples.push_back(timed(times.runs_a_sample) / static_cast<double>(times.runs_a_sample));
  }
  const auto [least, most] = std::ranges::minmax(samples);
  times.samples = static_cast<std::int64_t>(samples.size());
  times.median_ms = median(samples);
  times.min_ms = least;
  times.max_ms = most;
  return times;
}

double joules_a_run(Program& program, EnergyMeter& meter, double seconds) {
  constexpr double kBetweenLooks = 0.05;
  std::int64_t runs = 0, at_once = 1;
  program.device().finish();
  const double before = meter.joules();
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < seconds;) {
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < at_once; ++i) program.run();
    program.device().finish();
    runs += at_once;
    if (seconds_since(start) < kBetweenLooks) at_once *= 2;
  }
  return (meter.joules() - before) / static_cast<double>(runs);
}

}  // namespace concord
