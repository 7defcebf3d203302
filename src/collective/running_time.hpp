// RunningTime: how long something takes while this process runs. Where all processes of a training are stopped, as by
// SIGSTOP or the freezer of a container, none of them is late. Internal to the library.
#pragma once

#include <algorithm>
#include <chrono>

namespace concord::collective {

class RunningTime {
 public:
  using Clock = std::chrono::steady_clock;
  /// `most`: what a time between two looks counts at most; a few times that of looks that are not late.
  explicit RunningTime(std::chrono::duration<double> most = std::chrono::seconds(1),
                       Clock::time_point now = Clock::now())
      : most_(most), last_(now) {}

  /// Returns the time so far. To be called again and again while it passes.
  std::chrono::duration<double> look(Clock::time_point now = Clock::now()) {
    passed_ += std::min(most_, std::chrono::duration<double>(now - last_));
    last_ = now;
    return passed_;
  }

 private:
  std::chrono::duration<double> most_, passed_{0};
  Clock::time_point last_;
};

}  // namespace concord::collective
