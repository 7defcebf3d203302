// Jobs in threads of their own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "concord/compare/run/ordered_workers.hpp"
#include "concord_test.hpp"

using namespace concord;

TEST_CASE("what jobs find is noted in the order in which they were added, beside their owner", "[compare]") {
  for (const std::size_t threads : {1U, 3U}) {
    std::vector<int> noted;
    std::atomic<bool> by_owner = false;
    const std::thread::id owner = std::this_thread::get_id();
    OrderedWorkers beside(threads, 2);
    for (int i = 0; i < 50; ++i) {
      beside.add([&, i]() -> OrderedWorkers::Note {
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // others overtake it
        return [&, i] {
          noted.push_back(i);
          if (std::this_thread::get_id() == owner) by_owner = true;
        };
      });
    }
    beside.finish();
    REQUIRE(noted.size() == 50);
    CHECK(std::ranges::is_sorted(noted));
    CHECK_FALSE(by_owner);
  }
}

TEST_CASE("jobs are done side by side", "[compare]") {
  std::atomic<int> begun = 0;
  OrderedWorkers beside(2, 2);
  for (int i = 0; i < 2; ++i) {
    beside.add([&]() -> OrderedWorkers::Note {
      ++begun;
      while (begun < 2) std::this_thread::yield();  // for ever, were they one after the other
      return [] {};
    });
  }
  beside.finish();
  CHECK(begun == 2);
}

TEST_CASE("what a job throws reaches its owner, and the jobs behind it are not done", "[compare]") {
  std::atomic<bool> done = false;
  OrderedWorkers beside(1, 8);
  CHECK_THROWS_AS(
      [&] {
        beside.add([]() -> OrderedWorkers::Note { throw std::runtime_error("a job"); });
        beside.add([&done]() -> OrderedWorkers::Note {
          done = true;
          return [] {};
        });
        beside.finish();
      }(),
      std::runtime_error);
  CHECK_FALSE(done);
}

TEST_CASE("what a note throws reaches its owner, and nothing is noted behind it", "[compare]") {
  std::atomic<bool> noted = false;
  OrderedWorkers beside(3, 8);
  CHECK_THROWS_AS(
      [&] {
        beside.add([] { return [] { throw std::runtime_error("a note"); }; });
        beside.add([&noted] { return [&noted] { noted = true; }; });
        beside.finish();
      }(),
      std::runtime_error);
  CHECK_FALSE(noted);
}
