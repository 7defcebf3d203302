// BuildPool: the threads that build OpenCL programs. One belongs to each ProgramCache.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace concord::opencl {

/// Runs jobs in the order of their arrival, as many at once as there are workers. A worker starts when a job comes and
/// no other is free. From the end of the process on (std::exit, return from main) no job begins any more, and the end
/// waits for those that run: a driver must not be unloaded under its compiler.
class BuildPool {
 public:
  /// Does not throw.
  using Job = std::function<void()>;

  /// Without workers, `add` runs the job itself, still one at a time; so it does where the system gives no thread.
  explicit BuildPool(unsigned workers);
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;
  /// Destroys the jobs that nobody began and waits for the others.
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
