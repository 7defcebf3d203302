// Schedules: one closed formula each.
#include "concord/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "concord/core/check.hpp"

namespace concord::optim::schedule {
namespace {

std::int64_t count(const Progress& progress, Unit unit) { return unit == Unit::epoch ? progress.epoch : progress.step; }

/// The same in updates, where the updates of an epoch are known; `size` of them are a unit.
struct Steps {
  std::int64_t done = 0, size = 1;
};
Steps steps_of(const Progress& progress, Unit unit) {
  if (unit == Unit::step || progress.epoch_steps == 0) return {count(progress, unit), 1};
  return {progress.epoch * progress.epoch_steps + progress.epoch_step, progress.epoch_steps};
}

/// The progress since the end of a warm-up of `length` units, which may be in the middle of an epoch. `done` updates
/// ago, where the updates of an epoch are known.
Progress progress_since(const Progress& progress, std::int64_t done, std::int64_t length, Unit unit) {
  Progress since = progress;
  if (progress.epoch_steps == 0) {
    (unit == Unit::epoch ? since.epoch : since.step) -= length;
    return since;
  }
  since.step = done;
  since.epoch = done / progress.epoch_steps;
  since.epoch_step = done % progress.epoch_steps;
  return since;
}

/// From `from` to `to` along half a cosine, `part` in [0, 1].
double along_cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

std::string counted(std::int64_t n, Unit unit) {
  return fmt::format("{} {}", n, unit == Unit::epoch ? "epochs" : "steps");
}

/// Of a schedule that counts epochs in parts.
std::string counted_in_parts(std::int64_t n, Unit unit) {
  return counted(n, unit) + (unit == Unit::epoch ? " by steps" : "");
}

/// A schedule that reads no losses.
Schedule counting(std::string description, Schedule::Function function) {
  return {std::move(description), std::move(function), false};
}

void check_length(const char* schedule, std::int64_t length) {
  CONCORD_CHECK(length > 0, ArgumentError, "{} schedule: the length must be positive, got {}", schedule, length);
}

}  // namespace

Schedule constant() {
  return counting("constant", [](double base, const Progress&) { return base; });
}

Schedule step(std::int64_t size, double gamma, Unit unit) {
  check_length("step", size);
  return counting(fmt::format("step(size {}, gamma {})", counted(size, unit), gamma),
                  [=](double base, const Progress& progress) {
                    return base * std::pow(gamma, static_cast<double>(count(progress, unit) / size));
                  });
}

Schedule multistep(std::vector<std::int64_t> milestones, double gamma, Unit unit) {
  std::string text;
  for (const std::int64_t milestone : milestones) text += counted(milestone, unit) + ", ";
  return counting(fmt::format("multistep({}gamma {})", text, gamma), [=, milestones = std::move(milestones)](
                                                                         double base, const Progress& progress) {
    const std::int64_t t = count(progress, unit);
    const auto reached = std::ranges::count_if(milestones, [t](std::int64_t milestone) { return milestone <= t; });
    return base * std::pow(gamma, static_cast<double>(reached));
  });
}

Schedule exponential(double gamma, Unit unit) {
  return counting(fmt::format("exponential(gamma {} over {})", gamma, counted(1, unit)),
                  [=](double base, const Progress& progress) {
                    return base * std::pow(gamma, static_cast<double>(count(progress, unit)));
                  });
}

Schedule cosine(std::int64_t length, double end, Unit unit) {
  check_length("cosine", length);
  return counting(fmt::format("cosine(length {}, end {})", counted(length, unit), end),
                  [=](double base, const Progress& progress) {
                    const double part = static_cast<double>(count(progress, unit)) / static_cast<double>(length);
                    return along_cosine(base, end, std::min(part, 1.0));
                  });
}

Schedule cosine_restarts(std::int64_t length, std::int64_t growth, double end, Unit unit) {
  check_length("cosine_restarts", length);
  CONCORD_CHECK(growth >= 1, ArgumentError, "cosine_restarts schedule: the growth {} is below 1", growth);
  return counting(fmt::format("cosine_restarts(length {}, growth {}, end {})", counted(length, unit), growth, end),
                  [=](double base, const Progress& progress) {
                    std::int64_t t = count(progress, unit), cycle = length;
                    if (growth == 1) t %= length;
                    for (; t >= cycle; cycle *= growth) t -= cycle;
                    return along_cosine(base, end, static_cast<double>(t) / static_cast<double>(cycle));
                  });
}

Schedule polynomial(std::int64_t length, double power, double end, Unit unit) {
  check_length("polynomial", length);
  CONCORD_CHECK(power > 0, ArgumentError, "polynomial schedule: the power {} is not positive", power);
  return counting(fmt::format("polynomial(length {}, power {}, end {})", counted(length, unit), power, end),
                  [=](double base, const Progress& progress) {
                    const double part = static_cast<double>(count(progress, unit)) / static_cast<double>(length);
                    return end + (base - end) * std::pow(1 - std::min(part, 1.0), power);
                  });
}

Schedule inverse_square_root(std::int64_t warmup, Unit unit) {
  check_length("inverse_square_root", warmup);
  return counting(fmt::format("inverse_square_root(warmup {})", counted_in_parts(warmup, unit)),
                  [=](double base, const Progress& progress) {
                    const Steps steps = steps_of(progress, unit);
                    const auto t = static_cast<double>(steps.done + 1), top = static_cast<double>(warmup * steps.size);
                    return base * std::min(t / top, std::sqrt(top / t));
                  });
}

Schedule warmup(std::int64_t length, Schedule after, double start_factor, Unit unit) {
  check_length("warm-up", length);
  CONCORD_CHECK(start_factor > 0 && start_factor <= 1, ArgumentError,
                "warm-up schedule: the start factor {} is outside (0, 1]", start_factor);
  CONCORD_CHECK(after, ArgumentError, "warm-up schedule: the schedule that follows is empty");
  const bool reads_losses = after.reads_losses();
  std::string text = fmt::format("warmup(length {}, start {}) then {}", counted_in_parts(length, unit), start_factor,
                                 after.description());
  const auto rate = [=, after = std::move(after)](double base, const Progress& progress) {
    const Steps steps = steps_of(progress, unit);
    if (const std::int64_t all = length * steps.size; steps.done < all) {
      return base * (start_factor + (1 - start_factor) * static_cast<double>(steps.done) / static_cast<double>(all));
    }
    return after(base, progress_since(progress, steps.done - length * steps.size, length, unit));
  };
  return {std::move(text), rate, reads_losses};
}

Schedule one_cycle(std::int64_t length, const OneCycleOptions& options) {
  check_length("one-cycle", length);
  CONCORD_CHECK(options.rise >= 0 && options.rise <= 1 && options.start_divisor > 0 && options.end_divisor > 0,
                ArgumentError, "one-cycle schedule: rise {} must be in [0, 1], divisors {} and {} positive",
                options.rise, options.start_divisor, options.end_divisor);
  std::string text =
      fmt::format("one_cycle(length {}, rise {}, divisors {} and {})", counted_in_parts(length, options.unit),
                  options.rise, options.start_divisor, options.end_divisor);
  return counting(std::move(text), [=](double base, const Progress& progress) {
    const Steps steps = steps_of(progress, options.unit);
    const std::int64_t all = length * steps.size;
    const auto t = static_cast<double>(std::min(steps.done, all - 1)), last = static_cast<double>(all - 1);
    const double top = options.rise * static_cast<double>(all) - 1;
    const double first_rate = base / options.start_divisor;
    if (t <= top) return along_cosine(first_rate, base, top > 0 ? t / top : 1.0);
    return along_cosine(base, first_rate / options.end_divisor, last > top ? (t - top) / (last - top) : 1.0);
  });
}

Schedule plateau(const PlateauOptions& options) {
  CONCORD_CHECK(options.factor > 0 && options.factor < 1 && options.patience >= 0 && options.threshold >= 0 &&
                    options.cooldown >= 0 && options.end >= 0,
                ArgumentError,
                "plateau schedule: the factor {} must be in (0, 1), patience {}, threshold {}, cooldown {} and end {} "
                "not negative",
                options.factor, options.patience, options.threshold, options.cooldown, options.end);
  std::string text = fmt::format("plateau(factor {}, patience {}, threshold {} {}, cooldown {}, end {})",
                                 options.factor, options.patience, options.threshold,
                                 options.relative ? "relative" : "absolute", options.cooldown, options.end);
  const auto rate = [options](double base, const Progress& progress) {
    double now = base, best = std::numeric_limits<double>::infinity();
    std::int64_t worse = 0, resting = 0;
    for (const double loss : progress.losses) {
      const double bar = options.relative ? best * (1 - options.threshold) : best - options.threshold;
      worse = loss < bar ? 0 : worse + 1;
      if (loss < bar) best = loss;
      if (resting > 0) {
        --resting;
        worse = 0;
      }
      if (worse <= options.patience) continue;
      now = std::max(now * options.factor, std::min(options.end, now));
      resting = options.cooldown;
      worse = 0;
    }
    return now;
  };
  return {std::move(text), rate, true};
}

}  // namespace concord::optim::schedule
