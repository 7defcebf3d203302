// A handler before forks gives the forking thread's pool back; a pool of sleeping threads keeps others from spinning.
#include "threads.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "concord/core/platform.hpp"
#include "concord/core/threads.hpp"

namespace concord::cpu {
namespace {

#if !defined(__clang__) && defined(__GNUC__)
constexpr bool kIsGnu = true;
#else
constexpr bool kIsGnu = false;
#endif

std::atomic<std::uint64_t> generation{0};

/// GCC's implementation spins a hundred turns instead of hundreds of thousands while it has more threads than there are
/// processors: so it is given a pool of threads that sleep.
class IdlePool {
 public:
  static IdlePool& instance() {
    static IdlePool& pool = *new IdlePool;  // NOLINT(cppcoreguidelines-owning-memory): outlives whoever computes
    return pool;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable()) return;
    is_wanted_ = true;
    try {
      thread_ = std::thread([this] { live(); });
    } catch (const std::exception&) {  // no thread or no memory for one: the others spin
    }
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) return;
    {
      const std::lock_guard waiting(waiting_);
      is_wanted_ = false;
    }
    unwanted_.notify_all();
    thread_.join();  // and its pool with it
  }

 private:
  void live() {
    std::atomic<int> threads = 0;
#pragma omp parallel num_threads(std::max(omp_get_num_procs(), 1) + 1)
    ++threads;
    std::unique_lock lock(waiting_);
    unwanted_.wait(lock, [this] { return !is_wanted_; });
  }

  std::mutex mutex_, waiting_;
  std::condition_variable unwanted_;
  bool is_wanted_ = false;
  std::thread thread_;
};

/// How often the system took the processor from this thread so far; 0 where it does not say.
std::int64_t times_interrupted() {
#ifdef RUSAGE_THREAD
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) == 0) return usage.ru_nivcsw;
#endif
  return 0;
}

void before_fork() {
  // GCC's pools are broken in a child; other implementations mend theirs.
  if (kIsGnu) {
    IdlePool::instance().stop();
    if (omp_in_parallel() == 0) omp_pause_resource_all(omp_pause_soft);
  }
  generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void survive_forks() {
  static const int registered = ::pthread_atfork(before_fork, nullptr, nullptr);
  static_cast<void>(registered);
}

void watch_for_other_work() {
  using Clock = std::chrono::steady_clock;
  static const bool is_ours = kIsGnu && !environment("OMP_WAIT_POLICY") && !environment("GOMP_SPINCOUNT");
  if (!is_ours) return;
  struct Look {
    Clock::time_point time = Clock::now();
    std::int64_t interrupted = times_interrupted();
    int quiet = 0;
  };
  thread_local Look last;
  constexpr std::chrono::milliseconds kEvery{100};
  constexpr double kBusy = 100, kQuiet = 5;  // interruptions a second
  constexpr int kLooks = 20;                 // quiet ones before threads spin again
  const Clock::time_point now = Clock::now();
  if (now - last.time < kEvery) return;
  const std::int64_t interrupted = times_interrupted();
  const double rate =
      static_cast<double>(interrupted - last.interrupted) / std::chrono::duration<double>(now - last.time).count();
  last.time = now;
  last.interrupted = interrupted;
  last.quiet = rate < kQuiet ? last.quiet + 1 : 0;
  if (rate > kBusy) IdlePool::instance().start();
  if (last.quiet >= kLooks) IdlePool::instance().stop();
}

int team_threads() {
  if (omp_get_max_active_levels() == 0) return 1;
  return std::min(num_threads(), omp_get_thread_limit());
}

std::uint64_t thread_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace concord::cpu
