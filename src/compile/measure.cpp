// measure: host clock around enqueued runs, the device idle at both ends.
#include "concord/compile/measure.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace concord {

RunTimes measure(Program& program, const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](std::int64_t runs) {
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < runs; ++i) program.run();
    program.device().finish();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  constexpr double kSampleMs = 5;
  RunTimes times;
  (void)timed(options.warm_up);
  while (timed(times.runs_a_sample) < kSampleMs && times.runs_a_sample < 256) times.runs_a_sample *= 2;

  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  while (static_cast<std::int64_t>(samples.size()) < options.least ||
         std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds) {
    samples.push_back(timed(times.runs_a_sample) / static_cast<double>(times.runs_a_sample));
  }
  std::sort(samples.begin(), samples.end());
  times.samples = static_cast<std::int64_t>(samples.size());
  times.median_ms = samples[samples.size() / 2];
  times.min_ms = samples.front();
  times.max_ms = samples.back();
  return times;
}

}  // namespace concord
