// Schedules: the learning rate as a pure function of how far a training is, so that resuming one needs no state but
// the counters. Evaluated on the host in double precision; each gives the numbers of the PyTorch scheduler it names.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace concord::optim {

/// Steps and whole epochs done before the step in question.
struct Progress {
  std::int64_t step = 0, epoch = 0;
};

/// The rate of the next step; `base` is the optimizer's own.
using Schedule = std::function<double(double base, const Progress&)>;

/// What a schedule counts.
enum class Unit : std::uint8_t { epoch, step };

namespace schedule {

[[nodiscard]] Schedule constant();
/// base·gamma^⌊t/size⌋ (StepLR).
[[nodiscard]] Schedule step(std::int64_t size, double gamma = 0.1, Unit unit = Unit::epoch);
/// base·gamma^(milestones reached) (MultiStepLR).
[[nodiscard]] Schedule multistep(std::vector<std::int64_t> milestones, double gamma = 0.1, Unit unit = Unit::epoch);
/// base·gamma^t (ExponentialLR).
[[nodiscard]] Schedule exponential(double gamma, Unit unit = Unit::epoch);
/// From base down to `end` along half a cosine over `length`, then `end` (CosineAnnealingLR within its T_max).
[[nodiscard]] Schedule cosine(std::int64_t length, double end = 0, Unit unit = Unit::epoch);
/// From start_factor·base to base along a line over `length`, then `after`, whose count of this unit begins there
/// (SequentialLR of LinearLR and `after`).
[[nodiscard]] Schedule warmup(std::int64_t length, Schedule after = constant(), double start_factor = 1.0 / 3,
                              Unit unit = Unit::step);

struct OneCycleOptions {
  double rise = 0.3;          // part of the cycle in which the rate rises
  double start_divisor = 25;  // the first rate is base / start_divisor
  double end_divisor = 1e4;   // the last is the first / end_divisor
  Unit unit = Unit::step;
};
/// Up to base and down again along cosines over `length` (OneCycleLR with max_lr = base); the last rate afterwards.
/// Smith and Topin, "Super-Convergence", 2018.
[[nodiscard]] Schedule one_cycle(std::int64_t length, const OneCycleOptions& options = {});

}  // namespace schedule
}  // namespace concord::optim
