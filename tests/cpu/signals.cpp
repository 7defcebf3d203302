// Handlers of signals while the CPU backend computes.
#include <omp.h>
#include <pthread.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "concord/core/threads.hpp"
#include "concord/ops/matmul.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

/// The stack of the thread whose handlers the test looks at.
struct Stack {
  pthread_t thread{};
  std::uintptr_t low = 0, high = 0;
};
Stack stack;
std::atomic<int> handled = 0, on_other_stack = 0;

Stack stack_of_this_thread() {
  pthread_attr_t attributes;
  REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  return {pthread_self(), begin, begin + bytes};
}

extern "C" void look_at_stack(int) {
  if (pthread_equal(pthread_self(), stack.thread) == 0) return;  // threads that do not compute take signals too
  const int local = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&local);
  handled = handled + 1;
  if (here < stack.low || here >= stack.high) on_other_stack = on_other_stack + 1;
}

/// SIGALRM of the process every 100 microseconds, while it lives.
class ManyAlarms {
 public:
  ManyAlarms() {
    struct sigaction action = {};
    action.sa_handler = look_at_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    set_timer(100);
  }
  ManyAlarms(const ManyAlarms&) = delete;
  ManyAlarms& operator=(const ManyAlarms&) = delete;
  ~ManyAlarms() {
    set_timer(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  static void set_timer(suseconds_t microseconds) {
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  struct sigaction before_ = {};
};

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

}  // namespace

/// Without the signals held, oneDNN 2.6 gives every eighth handler a stack within the heap on processors without
/// AVX-512.
TEST_CASE("no handler of a signal runs on another stack than that of its thread", "[cpu]") {
  const int before = num_threads();
  stack = stack_of_this_thread();
  const Tensor x = normal_tensor(Shape{16, 1000}, 1), w = normal_tensor(Shape{1000, 1000}, 2);
  const ops::Matmul product(false, false);
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    set_num_threads(threads);
    const Tensor expected = run_kernel(product, {x, w}, false).outputs[0];
    handled = on_other_stack = 0;
    {
      const ManyAlarms alarms;
      for (int i = 0; i < 2000 && handled < 500; ++i) {
        const Tensor got = run_kernel(product, {x, w}, false).outputs[0];
        REQUIRE(std::ranges::equal(got.bytes(), expected.bytes()));
      }
    }
    CHECK(handled > 50);
    CHECK(on_other_stack == 0);
    CHECK_FALSE(is_blocked(SIGALRM));  // between launches
    int blocked = 0;
#pragma omp parallel num_threads(threads) reduction(+ : blocked)
    blocked += is_blocked(SIGALRM) && !is_blocked(SIGSEGV) ? 1 : 0;
    CHECK(blocked == threads - 1);
  }
  set_num_threads(before);
}

}  // namespace concord::test
