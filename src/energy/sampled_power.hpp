// The energy of a device that reports only its power. The power is sampled; the energy between two samples is their
// mean times the time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "concord/energy/meter.hpp"

namespace concord {

class SampledPower final : public EnergyMeter {
 public:
  using Watts = std::function<std::optional<double>()>;

  /// A thread of the meter calls `watts` every `interval`, and `joules` calls it too. It returns nothing if the power
  /// can no longer be read. `name` says whose power it is.
  SampledPower(std::string name, Watts watts, std::chrono::milliseconds interval = std::chrono::milliseconds(20));
  SampledPower(const SampledPower&) = delete;
  SampledPower& operator=(const SampledPower&) = delete;
  ~SampledPower() override;

  [[nodiscard]] double joules() override;
  [[nodiscard]] std::string source() const override;

 private:
  using Clock = std::chrono::steady_clock;
  void look();

  std::string name_;
  Watts watts_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;  // of what follows
  std::condition_variable stop_;
  bool is_stopped_ = false;
  Clock::time_point last_time_;
  std::optional<double> last_watts_;
  double joules_ = 0;
  std::thread thread_;
};

}  // namespace concord
