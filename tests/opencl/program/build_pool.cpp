// The pool that builds programs: how many jobs run at once, and what becomes of those that nobody began.
#include "concord/opencl/program/build_pool.hpp"

#include <atomic>
#include <future>
#include <latch>
#include <memory>

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("a pool runs as many jobs at once as it has workers", "[opencl]") {
  // Each job waits for the others: with fewer threads this test would not end.
  constexpr int kWorkers = 5;
  std::latch together(kWorkers);
  std::atomic<int> done = 0;
  opencl::BuildPool pool(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    pool.add([&] {
      together.arrive_and_wait();
      ++done;
    });
  }
  pool.finish();
  CHECK(done == kWorkers);
}

TEST_CASE("one worker takes jobs in their order", "[opencl]") {
  std::vector<int> order;
  opencl::BuildPool pool(1);
  for (int i = 0; i < 20; ++i) pool.add([&order, i] { order.push_back(i); });
  pool.finish();
  for (int i = 0; i < 20; ++i) CHECK(order.at(static_cast<std::size_t>(i)) == i);
}

TEST_CASE("without workers the callers run their jobs, one at a time", "[opencl]") {
  opencl::BuildPool pool(0);
  int at_once = 0, most = 0, done = 0;  // no atomics: the pool takes the callers apart
  std::vector<std::future<void>> callers;
  for (int i = 0; i < 4; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      for (int k = 0; k < 50; ++k) {
        pool.add([&] {
          most = std::max(most, ++at_once);
          ++done;
          --at_once;
        });
      }
    }));
  }
  for (std::future<void>& caller : callers) caller.get();
  pool.finish();
  CHECK(most == 1);
  CHECK(done == 200);
}

TEST_CASE("a pool that goes away finishes what runs and drops the rest", "[opencl]") {
  std::latch begun(1), dropped(1);
  std::atomic<int> first = 0, others = 0;
  {
    opencl::BuildPool pool(1);
    pool.add([&] {
      begun.count_down();
      dropped.wait();
      ++first;
    });
    begun.wait();
    const auto held = std::shared_ptr<int>(new int(0), [&](int* number) {
      delete number;
      dropped.count_down();
    });
    for (int i = 0; i < 10; ++i) pool.add([&others, held] { ++others; });
  }
  CHECK(first == 1);
  CHECK(others == 0);
}

}  // namespace concord::test
