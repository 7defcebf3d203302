// Threads in step: no part is a step ahead of another, and an error ends the work instead of leaving threads waiting.
#include "../../cpu/team.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("every part ends a step before any begins the next", "[cpu]") {
  constexpr int kParts = 3;
  constexpr std::int64_t kSteps = 500;
  std::vector<std::atomic<std::int64_t>> done(kParts);
  std::atomic<int> ahead = 0;
  cpu::in_step(kParts, kSteps, [&](std::int64_t step, int part) {
    for (const auto& other : done) ahead += other < step || other > step + 1;
    ++done[static_cast<std::size_t>(part)];
  });
  CHECK(ahead == 0);
  CHECK(std::ranges::all_of(done, [](const auto& steps) { return steps == kSteps; }));
}

TEST_CASE("a part that waits long sleeps and is woken", "[cpu]") {
  std::atomic<int> sum = 0;
  cpu::in_step(2, 3, [&](std::int64_t, int part) {
    volatile double work = 1;
    for (int i = 0; part == 1 && i < 30'000'000; ++i) work = work * 1.0000001;
    ++sum;
  });
  CHECK(sum == 6);
}

TEST_CASE("what a part throws comes out, once, and no thread waits for ever", "[cpu]") {
  std::atomic<int> later = 0;
  const auto work = [&](std::int64_t step, int part) {
    if (step == 2 && part == 1) throw std::runtime_error("the third step");
    if (step > 3) ++later;
  };
  CHECK_THROWS_WITH(cpu::in_step(4, 100, work), "the third step");
  CHECK(later == 0);
}

}  // namespace concord::test
