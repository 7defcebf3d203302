// The reference and the tolerance of operators with a prologue are those of the operator on the prologue's result.
#include "concord/compare/reference64/prologued.hpp"

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/ops/prologued.hpp"
#include "concord/ops/reduce.hpp"
#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("float64: an operator with a prologue reads the prologue's result", "[compare]") {
  const auto base = std::make_shared<ops::Reduce>(ops::ReduceKind::sum, std::vector<std::size_t>{0});
  const Expression product({scalar::input(0) * scalar::input(1)}, 2);
  const ops::Prologued op(base, 1, product, "multiply+reduce_sum");
  const Tensor x = Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor scale = Tensor::of<float>({2}, std::vector<float>{10, -1});
  const Tensor result = Tensor::of<float>({1, 2}, std::vector<float>{40, -6});
  const ReplayedNode node{{}, &op, {"x", "scale"}, {x, scale}, {"y"}, {result}};

  const auto read = float64::without_prologue(node);
  REQUIRE(read);
  CHECK(read->op == base.get());
  REQUIRE(read->inputs.size() == 1);
  const auto values = read->inputs[0].values<float>();
  CHECK(std::vector(values.begin(), values.end()) == std::vector<float>{10, -2, 30, -4});
  CHECK_FALSE(float64::without_prologue(*read));

  const float64::Results exact = float64::evaluate(node);
  REQUIRE(exact);
  CHECK(exact->front() == float64::Values{40, -6});
  CHECK(tolerance_of(node, 0) == tolerance_of(*read, 0));
  CHECK(tolerance_of(node, 0) > 0);
}

}  // namespace concord::test
