// Schedules: the learning rate as a pure function of how far a training is, so that resuming one needs no state but
// the counters and the validations so far. Evaluated on the host in double precision; each gives the numbers of the
// PyTorch scheduler it names.
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

/// Steps (updates) and whole epochs done before the step in question, and the losses of the validations so far, one an
/// epoch.
struct Progress {
  std::int64_t step = 0, epoch = 0;
  std::span<const double> losses = {};
};

/// The rate of the next step; `base` is the optimizer's own. One of those below, or any function of this form.
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
  /// Kind and parameters: "cosine(length 20 epochs, end 0)". Equal texts mean equal schedules, "custom" ones apart.
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Whether Progress::losses is looked at.
  [[nodiscard]] bool reads_losses() const { return reads_losses_; }

 private:
  std::string description_;
  Function function_;
  bool reads_losses_ = false;
};

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

/// end + (base − end)·(1 − t/length)^power, then `end` (PolynomialLR with its end of 0); a line with power 1.
[[nodiscard]] Schedule polynomial(std::int64_t length, double power = 1, double end = 0, Unit unit = Unit::epoch);
/// Half cosines from base to `end`, the first over `length`, each `growth` times as long as the one before
/// (CosineAnnealingWarmRestarts). Loshchilov and Hutter, "SGDR", 2017.
[[nodiscard]] Schedule cosine_restarts(std::int64_t length, std::int64_t growth = 1, double end = 0,
                                       Unit unit = Unit::epoch);
/// Up to base along a line over `warmup`, then base·√(warmup/t). Vaswani et al., "Attention Is All You Need", 2017.
[[nodiscard]] Schedule inverse_square_root(std::int64_t warmup, Unit unit = Unit::step);

struct PlateauOptions {
  double factor = 0.1;         // in (0, 1)
  std::int64_t patience = 10;  // epochs without improvement that are waited for
  double threshold = 1e-4;     // a smaller improvement is none,
  bool relative = true;        // as a part of the best loss, or absolute
  std::int64_t cooldown = 0;   // epochs after a reduction that are not counted
  double end = 0;              // the rate stays above it
};
/// base·factor^(plateaus so far) by the validation losses (ReduceLROnPlateau, mode "min").
[[nodiscard]] Schedule plateau(const PlateauOptions& options = {});

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
}  // namespace optim
}  // namespace concord
