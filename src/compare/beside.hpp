// Beside: work that a thread of its own does while its owner goes on. OperatorChecks compares values while the device
// computes the next ones.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace concord {

/// Does jobs one after another, in the order in which they were added.
class Beside {
 public:
  /// At most `most` jobs wait; more make their owner wait.
  explicit Beside(std::size_t most) : most_(most), thread_([this] { work(); }) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  /// Jobs that have not begun are dropped.
  ~Beside();
  /// Throws what an earlier job threw; the jobs behind that one are not done.
  void add(std::function<void()> job);
  /// Waits until all are done. Throws what one of them threw. Nothing may be added afterwards.
  void finish();

 private:
  void work();
  void end(bool drop);
  void rethrow() const;

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::exception_ptr thrown_;
  bool ended_ = false;
  std::thread thread_;  // the last: it works with all of the above
};

}  // namespace concord
