// OrderedWorkers: work that threads of its own do while its owner goes on. OperatorChecks compares values while the
// device computes the next ones.
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

/// Does jobs side by side; what they find is noted in the order in which they were added.
class OrderedWorkers {
 public:
  /// Notes what a job has found, while no other note runs.
  using Note = std::function<void()>;
  using Job = std::function<Note()>;

  /// So many threads, or as many as the machine gives. At most `most` jobs wait; more make their owner wait. Throws
  /// std::system_error where there is no thread to be had.
  OrderedWorkers(std::size_t threads, std::size_t most);
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;
  /// Jobs that have not begun are dropped.
  ~OrderedWorkers();
  /// Throws what an earlier job threw; after that no job begins and nothing is noted.
  void add(Job job);
  /// Waits until all are done and noted. Throws what one of them threw. Nothing may be added afterwards.
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
  std::deque<std::optional<Note>> found_;  // by jobs that have begun; nothing yet of those that go on
  std::size_t noted_ = 0;                  // jobs before the first of `found_`
  bool is_noting_ = false, ended_ = false;
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;  // the last: they work with all of the above
};

}  // namespace concord
