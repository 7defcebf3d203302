// Threads that go through many short steps together: OpenMP wakes them once, and a barrier that spins for a moment
// keeps them in step, since to wake a thread takes longer than such a step. Used by the recurrent layers.
#pragma once

#include <omp.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>

namespace concord::cpu {

/// Lets threads wait for each other, again and again. Whoever waits for more than microseconds leaves its processor to
/// others that want it, and whoever waits long sleeps.
class StepBarrier {
 public:
  /// Returns when `members` threads have called it.
  void arrive_and_wait(int members) {
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      phase_.notify_all();
      return;
    }
    for (int i = 0; i < kSpins; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
    }
    // Whoever is waited for may need this very processor.
    for (int i = 0; i < kYields; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      std::this_thread::yield();
    }
    phase_.wait(phase, std::memory_order_acquire);
  }

 private:
  static constexpr int kSpins = 4000;   // some microseconds
  static constexpr int kYields = 2000;  // a millisecond, if no other thread needs the processor
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
};

/// work(step, part) for step = 0 … steps − 1: for all parts before the next step. A part stays with one of `parts`
/// threads, or of fewer where there are no more. The first exception ends the work.
template <class Work>
void in_step(int parts, std::int64_t steps, const Work& work) {
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  StepBarrier barrier;
#pragma omp parallel num_threads(parts) if (parts > 1)
  {
    const int member = omp_get_thread_num(), members = omp_get_num_threads();
    for (std::int64_t step = 0; step < steps; ++step) {
      try {
        for (int part = member; part < parts && !failed; part += members) work(step, part);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
      barrier.arrive_and_wait(members);
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace concord::cpu
