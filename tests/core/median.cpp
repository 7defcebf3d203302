// median(): of odd and even numbers of values, in whatever order.
#include "concord/core/median.hpp"

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("the median is the middle, or half way between the middle two", "[core]") {
  CHECK(median({}) == 0);
  CHECK(median(std::vector<double>{7}) == 7);
  CHECK(median(std::vector<double>{8, 2}) == 5);
  CHECK(median(std::vector<double>{9, 1, 4}) == 4);
  const std::vector<double> four{40, 1, 3, 2};
  CHECK(median(four) == 2.5);
  CHECK(four.front() == 40);  // left as it was
}

}  // namespace concord::test
