// Schedules: one closed formula each.
#include "concord/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "concord/core/check.hpp"

namespace concord::optim::schedule {
namespace {

std::int64_t count(const Progress& progress, Unit unit) { return unit == Unit::epoch ? progress.epoch : progress.step; }

/// From `from` to `to` along half a cosine, `part` in [0, 1].
double along_cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

void check_length(const char* schedule, std::int64_t length) {
  CONCORD_CHECK(length > 0, ArgumentError, "{} schedule: the length must be positive, got {}", schedule, length);
}

}  // namespace

Schedule constant() {
  return [](double base, const Progress&) { return base; };
}

Schedule step(std::int64_t size, double gamma, Unit unit) {
  check_length("step", size);
  return [=](double base, const Progress& progress) {
    return base * std::pow(gamma, static_cast<double>(count(progress, unit) / size));
  };
}

Schedule multistep(std::vector<std::int64_t> milestones, double gamma, Unit unit) {
  return [=, milestones = std::move(milestones)](double base, const Progress& progress) {
    const std::int64_t t = count(progress, unit);
    const auto reached = std::ranges::count_if(milestones, [t](std::int64_t milestone) { return milestone <= t; });
    return base * std::pow(gamma, static_cast<double>(reached));
  };
}

Schedule exponential(double gamma, Unit unit) {
  return [=](double base, const Progress& progress) {
    return base * std::pow(gamma, static_cast<double>(count(progress, unit)));
  };
}

Schedule cosine(std::int64_t length, double end, Unit unit) {
  check_length("cosine", length);
  return [=](double base, const Progress& progress) {
    const double part = static_cast<double>(count(progress, unit)) / static_cast<double>(length);
    return along_cosine(base, end, std::min(part, 1.0));
  };
}

Schedule warmup(std::int64_t length, Schedule after, double start_factor, Unit unit) {
  check_length("warm-up", length);
  CONCORD_CHECK(start_factor > 0 && start_factor <= 1, ArgumentError,
                "warm-up schedule: the start factor {} is outside (0, 1]", start_factor);
  return [=, after = std::move(after)](double base, const Progress& progress) {
    const std::int64_t t = count(progress, unit);
    if (t < length) {
      return base * (start_factor + (1 - start_factor) * static_cast<double>(t) / static_cast<double>(length));
    }
    Progress rest = progress;
    (unit == Unit::epoch ? rest.epoch : rest.step) -= length;
    return after(base, rest);
  };
}

Schedule one_cycle(std::int64_t length, const OneCycleOptions& options) {
  check_length("one-cycle", length);
  CONCORD_CHECK(options.rise >= 0 && options.rise <= 1 && options.start_divisor > 0 && options.end_divisor > 0,
                ArgumentError, "one-cycle schedule: rise {} must be in [0, 1], divisors {} and {} positive",
                options.rise, options.start_divisor, options.end_divisor);
  return [=](double base, const Progress& progress) {
    const auto t = static_cast<double>(std::min(count(progress, options.unit), length - 1));
    const double top = options.rise * static_cast<double>(length) - 1;
    const double last = static_cast<double>(length) - 1;
    const double first_rate = base / options.start_divisor;
    if (t <= top) return along_cosine(first_rate, base, top > 0 ? t / top : 1.0);
    return along_cosine(base, first_rate / options.end_divisor, last > top ? (t - top) / (last - top) : 1.0);
  };
}

}  // namespace concord::optim::schedule
