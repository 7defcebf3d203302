// Handlers of signals while the CPU backend computes.
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include "concord/ops/matmul.hpp"
#include "host_threads.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

/// The stack of the thread whose handlers the test looks at.
std::atomic<std::uintptr_t> stack_low = 0, stack_high = 0;
std::atomic<int> handled = 0, on_other_stack = 0;

void look_at_stack_of_this_thread() {
  pthread_attr_t attributes;
  REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  stack_low = reinterpret_cast<std::uintptr_t>(low);
  stack_high = stack_low + bytes;
  handled = on_other_stack = 0;
}

extern "C" void look_at_stack(int) {
  const int local = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&local);
  handled = handled + 1;
  if (here < stack_low || here >= stack_high) on_other_stack = on_other_stack + 1;
}

/// Sends the calling thread SIGALRM again and again, while it lives.
class ManySignals {
 public:
  ManySignals() {
    struct sigaction action = {};
    action.sa_handler = look_at_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    sender_ = std::thread([this, to = pthread_self()] {
      while (!is_over_) {
        pthread_kill(to, SIGALRM);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
  }
  ManySignals(const ManySignals&) = delete;
  ManySignals& operator=(const ManySignals&) = delete;
  ~ManySignals() {
    is_over_ = true;
    sender_.join();
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ = {};
  std::atomic<bool> is_over_ = false;
  std::thread sender_;
};

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

/// Of a region of so many threads, those that block SIGALRM, and not SIGSEGV.
int blocking(int threads) {
  int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
  count += is_blocked(SIGALRM) && !is_blocked(SIGSEGV) ? 1 : 0;
  return count;
}

}  // namespace

/// Unless they are blocked, oneDNN 2.6 gives every eighth handler a stack within the heap, on a processor with AVX2.
TEST_CASE("no handler of a signal runs on another stack than that of its thread", "[cpu]") {
  const Tensor x = normal_tensor(Shape{16, 1000}, 1), w = normal_tensor(Shape{1000, 1000}, 2);
  const ops::Matmul product(false, false);
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    const HostThreads of_host(threads);
    const Tensor expected = run_kernel(product, {x, w}, false).outputs[0];
    look_at_stack_of_this_thread();
    const ManySignals signals;
    for (int i = 0; i < 100'000 && handled < 300; ++i) {
      const Tensor got = run_kernel(product, {x, w}, false).outputs[0];
      REQUIRE(std::ranges::equal(got.bytes(), expected.bytes()));
    }
    CHECK(handled >= 300);
    CHECK(on_other_stack == 0);
  }
}

TEST_CASE("OpenMP's threads block signals, also those that replace others", "[cpu]") {
  const HostThreads of_host(4);
  const ops::Matmul product(false, false);
  const Tensor x = normal_tensor(Shape{512, 512}, 1);
  const auto compute = [&] { static_cast<void>(run_kernel(product, {x, x}, false)); };
  compute();
  CHECK(blocking(4) == 3);
  CHECK_FALSE(is_blocked(SIGALRM));  // between launches
  CHECK(blocking(2) == 1);           // GCC's implementation ends the other two
  compute();
  CHECK(blocking(4) == 3);
}

}  // namespace concord::test
