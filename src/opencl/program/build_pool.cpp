// BuildPool: the queue, the workers, and the end of the process.
#include "concord/opencl/program/build_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <system_error>
#include <utility>

#include "concord/core/platform.hpp"
#include "concord/core/process_mark.hpp"
#include "concord/core/timeline.hpp"

namespace concord::opencl {
namespace {

// A build takes seconds. After this time it counts as hung, and the process ends without it.
constexpr std::chrono::seconds kReadPatience{30};

// Whether this thread runs a job: a compiler that ends the process from a job must not wait for itself.
thread_local bool in_job = false;

}  // namespace

/// All pools of the process; the end of the process stops them.
class LivePools {
 public:
  // Never destroyed: pools of static objects may outlive every other static.
  static LivePools& instance() {
    static LivePools& pools = *new LivePools;  // NOLINT(cppcoreguidelines-owning-memory)
    return pools;
  }

  void insert(BuildPool* pool) {
    const std::lock_guard lock(mutex_);
    pools_.insert(pool);
  }
  void erase(BuildPool* pool) {
    const std::lock_guard lock(mutex_);
    pools_.erase(pool);
  }

  // At the end of the process the thread-local objects of the ending thread are destroyed first. Then exit functions
  // run, the youngest first. Drivers' compilers register exit functions during the first build; these destroy objects
  // that builds use. The main thread, which ends most processes, therefore has a thread-local object that ends the
  // pools before any exit function runs. For other threads there are two exit functions: one registered before the
  // first job, and one after it.
  void before_job() {
    if (in_main_thread()) {
      static thread_local const EndOfThread end;
    }
    register_once(before_);
  }
  void after_job() { register_once(after_); }

 private:
  struct EndOfThread {
    ~EndOfThread() { instance().end_with_process(); }
  };

  static void register_once(std::atomic<bool>& done) {
    if (!done.exchange(true)) static_cast<void>(std::atexit([] { instance().end_with_process(); }));
  }
  void end_with_process() {
    if (process_.is_inherited()) return;  // the jobs run in the parent
    const std::lock_guard lock(mutex_);
    for (BuildPool* pool : pools_) pool->end_with_process();
  }

  const ProcessMark process_;
  std::mutex mutex_;
  std::set<BuildPool*> pools_;
  std::atomic<bool> before_{false}, after_{false};
};

BuildPool::BuildPool(unsigned workers) : workers_(workers) { LivePools::instance().insert(this); }

BuildPool::~BuildPool() {
  LivePools::instance().erase(this);
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(jobs_);
  }
  work_or_stop_.notify_all();
  dropped.clear();  // threads that wait for these jobs get an error
  for (std::thread& thread : threads_) thread.join();
}

void BuildPool::add(Job job) {
  LivePools::instance().before_job();
  std::unique_lock lock(mutex_);
  if (jobs_.size() >= free_ && threads_.size() < workers_) start_worker();
  if (threads_.empty()) idle_.wait(lock, [&] { return running_ == 0; });
  if (stopped_) return;
  if (threads_.empty()) {
    run(lock, std::move(job));
  } else {
    jobs_.push_back(std::move(job));
    work_or_stop_.notify_one();
  }
}

void BuildPool::finish() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return running_ == 0 && jobs_.empty(); });
}

void BuildPool::start_worker() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The existing workers do the work; `add` runs the job itself where there is none.
  }
}

void BuildPool::work() {
  timeline::name_thread("builder");
  std::unique_lock lock(mutex_);
  while (true) {
    ++free_;
    work_or_stop_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    --free_;
    if (stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    run(lock, std::move(job));
  }
}

void BuildPool::run(std::unique_lock<std::mutex>& lock, Job job) {
  ++running_;
  lock.unlock();
  const bool outer = std::exchange(in_job, true);
  {
    const timeline::Span span("build kernels");
    job();
  }
  job = nullptr;  // releases what the job holds without the lock
  in_job = outer;
  LivePools::instance().after_job();
  lock.lock();
  --running_;
  if (running_ == 0) idle_.notify_all();
}

void BuildPool::end_with_process() {
  std::unique_lock lock(mutex_);
  // The jobs stay in the queue: a thread that waits for a destroyed job would get an error while the process ends.
  stopped_ = true;
  work_or_stop_.notify_all();
  idle_.wait_for(lock, kReadPatience, [&] { return running_ <= (in_job ? 1U : 0U); });
}

}  // namespace concord::opencl
