// OrderedWorkers: threads that do jobs while their owner continues. OperatorChecks compares values while the device
// computes the next ones.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace concord {

/// Does jobs concurrently. Notes their results in the order in which the jobs were added.
class OrderedWorkers {
 public:
  /// Notes the result of a job. Only one note runs at a time.
  using Note = std::function<void()>;
  using Job = std::function<Note()>;

  /// Starts `threads` threads, or fewer if the system has no more. At most `most` jobs wait; `add` blocks while there
  /// are more. Throws std::system_error if no thread can start.
  OrderedWorkers(std::size_t threads, std::size_t most);
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;
  /// Jobs that have not begun are dropped.
  ~OrderedWorkers();
  /// Throws the error of an earlier job. After that no job begins and nothing is noted.
  void add(Job job);
  /// Waits until all jobs are done and noted. Throws the error of a job. No job may be added afterwards.
  void finish();

 private:
  void work();
  void note_found(std::unique_lock<std::mutex>& lock);
  void end(bool drop);
  void rethrow() const;

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::deque<std::optional<Note>> found_;  // by jobs that have begun; empty for a job that still runs
  std::size_t noted_ = 0;                  // jobs before the first of `found_`
  bool is_noting_ = false, ended_ = false;
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;  // the last: they work with all of the above
};

}  // namespace concord
