// Subnormal numbers are a matter of MXCSR on x86-64 and of FPCR on 64-bit ARM.
#include "thread_mode.hpp"

#include "threads.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace concord::cpu {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t kAreZero = _MM_FLUSH_ZERO_ON | 0x40U;  // results, and (denormals are zero) operands
std::uint64_t mode() { return _mm_getcsr(); }
void set_mode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kAreZero = std::uint64_t{1} << 24;  // FZ
std::uint64_t mode() {
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
constexpr std::uint64_t kAreZero = 0;
std::uint64_t mode() { return 0; }
void set_mode(std::uint64_t) {}
#endif

}  // namespace

ThreadMode::ThreadMode() : before_(mode()) {
  if ((before_ & kAreZero) != kAreZero) set_mode(before_ | kAreZero);
  // In a region of the calling program OpenMP gives one thread only; the others are set outside. Threads that OpenMP
  // starts later take the mode from the one that starts them.
  if (omp_in_parallel() != 0) return;
  thread_local std::uint64_t set_in = ~std::uint64_t{0};
  const int threads = team_threads();
  const std::uint64_t now = thread_generation() << 16 | static_cast<std::uint64_t>(threads);
  if (set_in == now) return;
  set_in = now;
  const TeamSize team(threads);
#pragma omp parallel num_threads(threads)
  {
    set_mode(mode() | kAreZero);
    if (omp_get_thread_num() > 0) block_signals_of_thread();
  }
}

ThreadMode::~ThreadMode() {
  if ((before_ & kAreZero) != kAreZero) set_mode(before_);
}

}  // namespace concord::cpu
