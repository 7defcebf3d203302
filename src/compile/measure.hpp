// measure: how long one run of a program takes. Used by compare and by `concord bench`.
#pragma once

#include <cstdint>

#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"
#include "concord/energy/meter.hpp"

namespace CONCORD_PUBLIC concord {

struct MeasureOptions {
  double seconds = 1.0;      // measure at least this long …
  std::int64_t least = 10;   // … and at least this many samples
  std::int64_t warm_up = 3;  // runs before
};

/// Milliseconds of a run. A sample is one run, or as many as fill 5 ms, between two waits of the host.
struct RunTimes {
  double median_ms = 0, min_ms = 0, max_ms = 0;
  std::int64_t samples = 0, runs_a_sample = 1;
};

[[nodiscard]] RunTimes measure(Program& program, const MeasureOptions& options = {});

/// Joules that `meter` counts in one run, over at least `seconds` of runs one after another: counters move every tenth
/// of a second or so. What the device takes at rest is in it.
[[nodiscard]] double joules_a_run(Program& program, EnergyMeter& meter, double seconds = 2);

}  // namespace concord
