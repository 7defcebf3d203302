// deviation_of() and keep_worst(): what is told of one result of an operator.
#include "concord/compare/run/deviation.hpp"

#include <cmath>

#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

/// (2, 3) x (3, 2), the last of whose results cancels out.
ReplayedNode product(const Operator& op, std::vector<float> results) {
  const Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 1, 1, -2}), b = Tensor::of<float>({3, 2}, {1, 1, 1, 1, 1, 1});
  ReplayedNode node{{}, &op, {"a", "b"}, {a, b}, {"y"}, {Tensor::of<float>({2, 2}, std::move(results))}};
  node.entry.node = "grad/fc/matmul";
  node.entry.pass = Pass::gradient;
  node.entry.cost = op.cost(std::vector{a.spec(), b.spec()}, std::vector{node.results[0].spec()});
  return node;
}

Deviation deviation(const ReplayedNode& node, const std::vector<Tensor>& expected,
                    Precision precision = Precision::fp32) {
  Magnitudes magnitudes;
  return deviation_of(node, 0, expected, {}, precision, magnitudes);
}

}  // namespace

TEST_CASE("equal results have their tolerance, too", "[compare]") {
  const ops::Matmul matmul(false, false);
  const ReplayedNode node = product(matmul, {6, 6, 0, 0});
  const Deviation d = deviation(node, node.results);
  CHECK(d.error == 0);
  CHECK(d.tolerance == tolerance_of(node, 0));
  CHECK(d.tolerance > 0);
  CHECK((d.largest_relative == 0 && d.largest_ulps == 0 && d.worst_element.empty()));
  CHECK(d.share() == 0);
  CHECK(d.pass == Pass::gradient);
}

TEST_CASE("the worst element is that of the most ULPs, of what rounding leaves of it", "[compare]") {
  const ops::Matmul matmul(false, false);
  const std::vector<Tensor> right = product(matmul, {6, 6, 0, 0}).results;
  const ReplayedNode node = product(matmul, {6, 6 + 0x1p-20F, 0, 0});
  const Deviation one = deviation(node, right);
  CHECK(one.largest_relative == Approx(0x1p-20 / 6));
  CHECK(one.largest_ulps == 2);
  CHECK(one.worst_element == std::vector<std::int64_t>{0, 1});
  CHECK(one.place() == " at [0, 1]");
  CHECK(Deviation{}.place().empty());  // of a scalar

  const double least = kLeastOfTolerance * tolerance_of(node, 0);
  const Deviation none = deviation(product(matmul, {6, 6 + 0x1p-20F, 0, -0x1p-20F}), right);
  CHECK(none.worst_element == std::vector<std::int64_t>{1, 1});
  CHECK(none.largest_relative == Approx(0x1p-20 / least));
  CHECK(none.largest_relative == Approx(none.share() / kLeastOfTolerance));
  CHECK(none.largest_ulps <= 0x1p24 * none.share() / kLeastOfTolerance);

  // What another precision allows leaves elements as large as they are.
  const Deviation bf16 = deviation(node, right, Precision::bf16);
  CHECK(bf16.tolerance > 100 * one.tolerance);
  CHECK(bf16.largest_ulps == 2);
}

TEST_CASE("errors of what may be infinite tell nothing, those of what must be equal all", "[compare]") {
  const ops::Transpose transpose({1, 0});
  ReplayedNode node = product(transpose, {1, 2, 3, 4});
  const std::vector<Tensor> expected{Tensor::of<float>({2, 2}, {1, 2, 3, 4 + 0x1p-21F})};
  const Deviation moved = deviation(node, expected);
  CHECK(moved.tolerance == 0);
  CHECK(moved.diverges());
  CHECK(moved.largest_ulps == 1);
  CHECK(moved.worst_element == std::vector<std::int64_t>{1, 1});

  Magnitudes magnitudes;
  const std::vector<double> exact{1, 2, 3, 8};
  const Deviation held = deviation_of(node, 0, expected, exact, Precision::fp32, magnitudes);
  CHECK(held.error == 4);
  CHECK(held.largest_relative == 0.5);

  node.results[0].values<float>()[2] = NAN;
  const Deviation lost = deviation(node, expected);
  CHECK((std::isinf(lost.error) && std::isinf(lost.largest_relative) && std::isinf(lost.largest_ulps)));
  CHECK(lost.worst_element == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("of each node and form the result farthest for its tolerance is kept", "[compare]") {
  std::vector<Deviation> kept;
  const auto add = [&](double error, Form form) {
    Deviation found;
    found.error = error;
    found.tolerance = 1;
    found.form = form;
    keep_worst(kept, found);
  };
  add(0.25, Form::alone);
  add(0.5, Form::alone);
  add(0.375, Form::alone);
  add(0.125, Form::fused);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].error == 0.5);
  CHECK(kept[1].error == 0.125);
  CHECK(kept[1].form == Form::fused);
}

}  // namespace concord::test
