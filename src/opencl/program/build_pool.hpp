// BuildPool: the threads that build OpenCL programs. One belongs to each ProgramCache.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace concord::opencl {

/// Runs jobs in the order of their arrival, at most one per worker at once. A worker starts when a job arrives and no
/// worker is free. When the process ends (std::exit, return from main), the pool begins no more jobs and waits for the
/// running ones: a driver must not be unloaded while its compiler runs.
class BuildPool {
 public:
  /// Does not throw.
  using Job = std::function<void()>;

  /// Without workers, and where the system cannot start a thread, `add` runs the job itself, one at a time.
  explicit BuildPool(unsigned workers);
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;
  /// Destroys the jobs that have not begun and waits for the others.
  ~BuildPool();

  void add(Job job);
  /// Waits until every job added so far is done.
  void finish();

 private:
  friend class LivePools;
  void work();
  void start_worker();
  void run(std::unique_lock<std::mutex>& lock, Job job);
  /// Begins no more jobs and waits for those that run, but not forever.
  void end_with_process();

  const unsigned workers_;
  std::mutex mutex_;
  std::condition_variable work_or_stop_, idle_;
  std::deque<Job> jobs_;
  std::vector<std::thread> threads_;
  unsigned running_ = 0;  // jobs
  unsigned free_ = 0;     // workers that wait for one
  bool stopped_ = false;
};

}  // namespace concord::opencl
