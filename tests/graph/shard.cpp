// Parts of tensors, and the whole again.
#include "concord/graph/shard.hpp"

#include <numeric>

#include "concord_test.hpp"

using namespace concord;

namespace {

Tensor counted(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 0.0F);
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

}  // namespace

TEST_CASE("a shard has its part of each block", "[graph]") {
  const Tensor whole = counted(Shape{4, 2});
  CHECK(floats(part_of(whole, {.rank = 1, .ranks = 2})) == std::vector<float>{4, 5, 6, 7});
  CHECK(floats(part_of(whole, {.rank = 1, .ranks = 2, .blocks = 2})) == std::vector<float>{2, 3, 6, 7});
  CHECK(floats(part_of(whole, {.rank = 0, .ranks = 2, .axis = 1})) == std::vector<float>{0, 2, 4, 6});
  CHECK(floats(part_of(whole, {})) == floats(whole));
  CHECK_THROWS_AS(part_of(whole, {.rank = 0, .ranks = 3}), ShapeError);
  CHECK_THROWS_AS(part_of(whole.shape(), {.rank = 0, .ranks = 2, .axis = 2}), ShapeError);
}

TEST_CASE("the shards of all ranks are the whole", "[graph]") {
  for (const std::size_t axis : {0U, 1U, 2U}) {
    for (const std::int64_t blocks : {1, 3}) {
      const Tensor whole = counted(Shape{12, 6, 18});
      Tensor joined(whole.spec());
      for (int rank = 0; rank < 2; ++rank) {
        const Shard shard{.rank = rank, .ranks = 2, .axis = axis, .blocks = blocks};
        const Tensor part = part_of(whole, shard);
        CHECK(whole_of(part.spec(), shard) == whole.spec());
        put_part(joined, part, shard);
      }
      CHECK(floats(joined) == floats(whole));
    }
  }
  Tensor other(DType::f32, Shape{4, 2});
  CHECK_THROWS_AS(put_part(other, other, {.rank = 0, .ranks = 2}), ShapeError);
}
