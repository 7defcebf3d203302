// WaitLimit: ends waits in a library that take too long, by the time in which this process runs. Used by the exchange
// by Gloo, whose own time limit also passes while the process is stopped. Internal to the library.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "concord/collective/running_time.hpp"

namespace concord::collective {

class WaitLimit {
 public:
  /// Starts a thread, which has the blocked signals of this one.
  explicit WaitLimit(std::chrono::duration<double> limit);
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;
  ~WaitLimit();

  /// Calls `wait`, one at a time. If it takes longer than the limit, calls `abort` from the thread, which must make
  /// `wait` return or throw. Returns whether it did.
  [[nodiscard]] bool is_exceeded(const std::function<void()>& wait, std::function<void()> abort);

 private:
  void watch();

  const std::chrono::duration<double> limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> abort_;  // of the wait that is under way
  RunningTime waited_;
  bool is_aborted_ = false, is_over_ = false;
  std::thread thread_;
};

}  // namespace concord::collective
