// Team: the pieces of a loop are all elements, each once, whatever the number of threads.
#include "concord/core/team.hpp"

#include <atomic>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("a team of threads works through a loop", "[core]") {
  for (const int threads : {0, 1, 2, 7}) {
    Team team(threads);
    for (const std::size_t n : {0, 1, 63, 64, 65, 1000, 100'003}) {
      for (const std::size_t least : {0, 1, 64, 1'000'000}) {
        std::vector<int> visits(n);
        std::atomic<std::size_t> short_pieces = 0;
        team.for_pieces(n, least, [&](std::size_t first, std::size_t count) {
          if (count < least) ++short_pieces;
          for (std::size_t i = first; i < first + count; ++i) ++visits[i];
        });
        CAPTURE(threads, n, least);
        REQUIRE(visits == std::vector<int>(n, 1));
        REQUIRE(short_pieces <= 1);
      }
    }
  }
}

TEST_CASE("a team of threads takes one loop after the other", "[core]") {
  Team team(4);
  std::vector<std::size_t> sums(64);
  for (std::size_t round = 0; round < 2000; ++round) {
    team.for_pieces(sums.size(), 1, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) sums[i] += round;
    });
  }
  REQUIRE(sums == std::vector<std::size_t>(sums.size(), 1999 * 2000 / 2));
}

}  // namespace concord::test
