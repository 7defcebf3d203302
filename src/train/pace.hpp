// Pace: keeps the host a little ahead of the device, and no more, so that a training can be watched and stopped.
// Internal to the room.
#pragma once

#include <algorithm>
#include <chrono>

#include "concord/device/device.hpp"

namespace concord::train {

class Pace {
 public:
  explicit Pace(Device& device) : device_(device) {}

  /// To be called after each step. Ends groups of steps of about 20 ms with an event on the queue, and waits for the
  /// one before: at most two groups are under way.
  void step() {
    if (++in_group_ < group_) return;
    in_group_ = 0;
    EventPtr end = device_.record();
    device_.flush();
    if (last_) {
      const timeline::Span span("wait for the device");
      last_->wait();
    }
    last_ = std::move(end);
    const auto now = Clock::now();
    const std::chrono::duration<double> elapsed = now - since_;
    since_ = now;
    if (elapsed.count() < 0.01) group_ = std::min(group_ * 2, kLargestGroup);
    if (elapsed.count() > 0.04) group_ = std::max(group_ / 2, 1);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLargestGroup = 256;

  Device& device_;
  EventPtr last_;
  Clock::time_point since_ = Clock::now();
  int group_ = 1, in_group_ = 0;
};

}  // namespace concord::train
