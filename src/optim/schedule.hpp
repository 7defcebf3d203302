// Schedules: the learning rate as a pure function of the progress of a training. So a resumed training needs no other
// state than its counters and validation losses. The host evaluates schedules in double precision. Each gives the
// numbers of the named PyTorch scheduler.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// The updates and complete epochs before a step, and the validation losses so far, one for each epoch.
struct Progress {
  std::int64_t step = 0, epoch = 0;
  std::span<const double> losses = {};
  std::int64_t epoch_step = 0, epoch_steps = 0;  // updates of this epoch before the step, and in all; 0: not known
};

/// The learning rate of the next step; `base` is that of the optimizer. Use one of the schedules below, or any function
/// of this form.
class Schedule {
 public:
  using Function = std::function<double(double base, const Progress& progress)>;
  Schedule() = default;
  template <class F>
  requires(!std::same_as<F, Schedule> && std::convertible_to<F, Function>) Schedule(F function)
      : Schedule("custom", std::move(function), false) {}  // NOLINT(google-explicit-constructor)
  Schedule(std::string description, Function function, bool reads_losses)
      : description_(std::move(description)), function_(std::move(function)), reads_losses_(reads_losses) {}

  [[nodiscard]] double operator()(double base, const Progress& progress) const { return function_(base, progress); }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }
  /// Kind and parameters: "cosine(length 20 epochs, end 0)". Equal texts mean equal schedules, except "custom".
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Returns whether the schedule reads Progress::losses.
  [[nodiscard]] bool reads_losses() const { return reads_losses_; }

 private:
  std::string description_;
  Function function_;
  bool reads_losses_ = false;
};

/// The unit that a schedule counts, t below. Schedules that rise (warmup, inverse_square_root, one_cycle) count epochs
/// in parts: they change with each update, and a rise of one epoch is one.
enum class Unit : std::uint8_t { epoch, step };

namespace schedule {

[[nodiscard]] Schedule constant();
/// base·gamma^⌊t/size⌋ (StepLR).
[[nodiscard]] Schedule step(std::int64_t size, double gamma = 0.1, Unit unit = Unit::epoch);
/// base·gamma^(number of milestones reached) (MultiStepLR).
[[nodiscard]] Schedule multistep(std::vector<std::int64_t> milestones, double gamma = 0.1, Unit unit = Unit::epoch);
/// base·gamma^t (ExponentialLR).
[[nodiscard]] Schedule exponential(double gamma, Unit unit = Unit::epoch);
/// From base to `end` along half a cosine over `length`, then `end` (CosineAnnealingLR up to its T_max).
[[nodiscard]] Schedule cosine(std::int64_t length, double end = 0, Unit unit = Unit::epoch);
/// Linear from start_factor·base to base over `length`; then `after`, which counts steps and epochs from that point
/// (SequentialLR of LinearLR and `after`). So an epoch of `after` begins in the middle of one of the training where a
/// warm-up in steps ends there. Where the updates of an epoch are not known, only `unit` counts from that point.
[[nodiscard]] Schedule warmup(std::int64_t length, Schedule after = constant(), double start_factor = 1.0 / 3,
                              Unit unit = Unit::step);

/// end + (base − end)·(1 − t/length)^power, then `end` (PolynomialLR has the end 0). Linear with power 1.
[[nodiscard]] Schedule polynomial(std::int64_t length, double power = 1, double end = 0, Unit unit = Unit::epoch);
/// Half cosines from base to `end`. The first takes `length`, each later one is `growth` times as long as the one
/// before (CosineAnnealingWarmRestarts; Loshchilov and Hutter, "SGDR", 2017).
[[nodiscard]] Schedule cosine_restarts(std::int64_t length, std::int64_t growth = 1, double end = 0,
                                       Unit unit = Unit::epoch);
/// Linear up to base over `warmup`, then base·√(warmup/t) (Vaswani et al., "Attention Is All You Need", 2017).
[[nodiscard]] Schedule inverse_square_root(std::int64_t warmup, Unit unit = Unit::step);

struct PlateauOptions {
  double factor = 0.1;         // factor of each reduction, in (0, 1)
  std::int64_t patience = 10;  // epochs without improvement before a reduction
  double threshold = 1e-4;     // smallest change that counts as an improvement
  bool relative = true;        // threshold relative to the best loss, else absolute
  std::int64_t cooldown = 0;   // epochs after a reduction that do not count
  double end = 0;              // lower limit of the learning rate
};
/// base·factor^(number of plateaus so far) by the validation losses (ReduceLROnPlateau, mode "min").
[[nodiscard]] Schedule plateau(const PlateauOptions& options = {});

struct OneCycleOptions {
  double rise = 0.3;          // part of the cycle in which the learning rate rises
  double start_divisor = 25;  // the first learning rate is base / start_divisor
  double end_divisor = 1e4;   // the last one is the first / end_divisor
  Unit unit = Unit::step;
};
/// Along cosines up to base and down again over `length` (OneCycleLR with max_lr = base, and with epochs and
/// steps_per_epoch for Unit::epoch; Smith and Topin, "Super-Convergence", 2018). Later steps keep the last learning
/// rate.
[[nodiscard]] Schedule one_cycle(std::int64_t length, const OneCycleOptions& options = {});

}  // namespace schedule
}  // namespace optim
}  // namespace concord
