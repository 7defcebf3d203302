// Time that counts only while this process runs, and waits that it limits.
#include "concord/collective/running_time.hpp"

#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "concord/collective/wait_limit.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using collective::RunningTime;
using collective::WaitLimit;

TEST_CASE("time in which the process was stopped counts as one look", "[collective]") {
  using std::chrono::milliseconds;
  const RunningTime::Clock::time_point start{};
  RunningTime time(std::chrono::seconds(1), start);
  CHECK(time.look(start + milliseconds(50)).count() == Approx(0.05));
  CHECK(time.look(start + milliseconds(800)).count() == Approx(0.8));
  CHECK(time.look(start + std::chrono::hours(1)).count() == Approx(1.8));
  CHECK(time.look(start + std::chrono::hours(1) + milliseconds(100)).count() == Approx(1.9));
}

TEST_CASE("a wait that takes too long is ended, and the next one has its own time", "[collective]") {
  WaitLimit limit(std::chrono::milliseconds(200));
  std::mutex mutex;
  std::condition_variable changed;
  bool is_aborted = false;
  CHECK(limit.is_exceeded(
      [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return is_aborted; });
      },
      [&] {
        const std::lock_guard lock(mutex);
        is_aborted = true;
        changed.notify_one();
      }));
  CHECK_FALSE(limit.is_exceeded([] {}, [] {}));
  CHECK_THROWS_AS(limit.is_exceeded([] { throw std::runtime_error("lost"); }, [] {}), std::runtime_error);
}
