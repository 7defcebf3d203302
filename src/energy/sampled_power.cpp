// A thread reads the power and sums up the energy.
#include "concord/energy/sampled_power.hpp"

#include <fmt/format.h>

#include "concord/core/check.hpp"

namespace concord {

SampledPower::SampledPower(std::string name, Watts watts, std::chrono::milliseconds interval)
    : name_(std::move(name)),
      watts_(std::move(watts)),
      interval_(interval),
      last_time_(Clock::now()),
      last_watts_(watts_()) {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, interval_, [this] { return is_stopped_; })) look();
  });
}

SampledPower::~SampledPower() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

// After a failed reading the energy used meanwhile is unknown, so the meter never reads the power again.
void SampledPower::look() {
  if (!last_watts_) return;
  const std::optional<double> watts = watts_();
  const Clock::time_point now = Clock::now();
  if (watts) joules_ += 0.5 * (*last_watts_ + *watts) * std::chrono::duration<double>(now - last_time_).count();
  last_watts_ = watts;
  last_time_ = now;
}

double SampledPower::joules() {
  const std::lock_guard lock(mutex_);
  look();
  CONCORD_CHECK(last_watts_.has_value(), DeviceError,
                "the power of the {} can no longer be read; `concord doctor` checks whether it still works", name_);
  return joules_;
}

std::string SampledPower::source() const {
  return fmt::format("{}, its power summed every {} ms", name_, interval_.count());
}

}  // namespace concord
