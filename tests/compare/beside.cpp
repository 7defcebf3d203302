// Jobs in a thread of their own.
#include "concord/compare/beside.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "concord_test.hpp"

using namespace concord;

TEST_CASE("jobs are done in the order in which they were added, beside their owner", "[compare]") {
  std::vector<int> done;
  std::thread::id other;
  Beside beside(2);
  for (int i = 0; i < 50; ++i) {
    beside.add([&done, &other, i] {
      done.push_back(i);
      other = std::this_thread::get_id();
    });
  }
  beside.finish();
  REQUIRE(done.size() == 50);
  CHECK(std::ranges::is_sorted(done));
  CHECK(other != std::this_thread::get_id());
}

TEST_CASE("what a job throws reaches its owner, and the jobs behind it are not done", "[compare]") {
  std::atomic<bool> done = false;
  Beside beside(8);
  CHECK_THROWS_AS(
      [&] {
        beside.add([] { throw std::runtime_error("a job"); });
        beside.add([&done] { done = true; });
        beside.finish();
      }(),
      std::runtime_error);
  CHECK_FALSE(done);
}
