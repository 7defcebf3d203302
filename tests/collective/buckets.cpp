// Buckets of what the ranks of a training sum.
#include "concord/collective/buckets.hpp"

#include <cstddef>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {
namespace {

using Numbers = std::vector<std::size_t>;

Numbers buckets(const Numbers& bytes) { return collective::buckets_of(bytes, 80); }

}  // namespace

TEST_CASE("buckets have as many vectors as fit, in order", "[collective]") {
  CHECK(buckets({}).empty());
  CHECK(buckets({10}) == Numbers{0});
  CHECK(buckets({30, 50, 1, 30}) == Numbers{0, 0, 1, 1});
  CHECK(buckets({30, 200, 30}) == Numbers{0, 1, 2});  // more than a bucket holds
}

TEST_CASE("the end of a long last bucket goes alone", "[collective]") {
  CHECK(buckets({40, 20, 6, 2}) == Numbers{0, 0, 1, 1});
  CHECK(buckets({40, 20, 6, 6}) == Numbers{0, 0, 0, 1});
  CHECK(buckets({70, 30, 25}) == Numbers{0, 1, 2});  // one vector, though it is more than an eighth
  CHECK(buckets({20, 20, 30, 5}) == Numbers{0, 0, 0, 1});
  CHECK(buckets({30, 30}) == Numbers{0, 0});  // but less than half of the bucket
  CHECK(buckets({20, 20}) == Numbers{0, 0});  // nor of a short one
  CHECK(buckets({10, 200}) == Numbers{0, 1});
}

}  // namespace concord::test
