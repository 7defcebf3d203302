// measure: the time of one run of a program. compare and `concord bench` use it.
#pragma once

#include <cstdint>

#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"
#include "concord/energy/meter.hpp"

namespace CONCORD_PUBLIC concord {

struct MeasureOptions {
  double seconds = 1.0;      // measure for at least this many seconds …
  std::int64_t least = 10;   // … and at least this many samples
  std::int64_t warm_up = 3;  // runs before the measurement
};

/// Milliseconds of one run. A sample is the time between two waits of the host. It covers one run, or as many runs as
/// fill 5 ms.
struct RunTimes {
  double median_ms = 0, min_ms = 0, max_ms = 0;
  std::int64_t samples = 0, runs_a_sample = 1;
};

/// Times runs after `warm_up` runs. Assignments happen: a training step trains.
[[nodiscard]] RunTimes measure(Program& program, const MeasureOptions& options = {});

/// The joules of one run, counted by `meter` over at least `seconds` of consecutive runs (counters are updated about
/// every tenth of a second). The energy that the device uses at rest is included.
[[nodiscard]] double joules_a_run(Program& program, EnergyMeter& meter, double seconds = 2);

}  // namespace concord
