// extent_of() and largest_difference(): values that are not finite, and tensors that several threads share.
#include "concord/compare/extent.hpp"

#include <cmath>

#include "concord_test.hpp"

namespace concord::test {
namespace {

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

TEST_CASE("the largest difference counts what is not finite", "[compare]") {
  CHECK(largest_difference(floats({1, 2, 3}), floats({1, 2, 3})) == 0);
  CHECK(largest_difference(floats({1, 2, 3}), floats({1.5F, 0, 3})) == 2);
  CHECK(largest_difference(floats({NAN, 1}), floats({NAN, 1})) == 0);
  CHECK(largest_difference(floats({NAN, 1}), floats({1, 1})) == INFINITY);
  CHECK(largest_difference(floats({1, 1}), floats({1, NAN})) == INFINITY);
  CHECK(largest_difference(floats({NAN, 5}), floats({1, 1})) == INFINITY);
  CHECK(largest_difference(floats({INFINITY}), floats({INFINITY})) == 0);
  CHECK(largest_difference(floats({INFINITY}), floats({-INFINITY})) == INFINITY);
  CHECK(largest_difference(floats({INFINITY}), floats({1})) == INFINITY);
  const std::vector<std::int32_t> one{1, 2}, other{1, 3};
  CHECK(largest_difference(Tensor::of<std::int32_t>({2}, one), Tensor::of<std::int32_t>({2}, one)) == 0);
  CHECK(largest_difference(Tensor::of<std::int32_t>({2}, one), Tensor::of<std::int32_t>({2}, other)) == INFINITY);
}

TEST_CASE("an extent leaves out what is not finite", "[compare]") {
  const Extent extent = extent_of(floats({3, -4, NAN, -INFINITY}));
  CHECK(extent.largest == 4);
  CHECK(extent.rms == 2.5);
  CHECK(extent_of(floats({})).rms == 0);
}

TEST_CASE("the rms along axes is that of the largest terms of a sum", "[compare]") {
  Tensor tensor(DType::f32, {2, 3, 40});
  for (std::size_t i = 0; i < 3; ++i) tensor.values<float>()[40 * i + 7] = static_cast<float>(i + 1);
  const auto along = [&](std::vector<std::size_t> axes) { return largest_rms_along(tensor, axes); };
  CHECK(along({2}) == Approx(3 / std::sqrt(40.0)));
  CHECK(along({1}) == Approx(std::sqrt(14.0 / 3)));
  CHECK(along({0, 1}) == Approx(std::sqrt(14.0 / 6)));
  CHECK(along({0, 2}) == Approx(3 / std::sqrt(80.0)));
  CHECK(along({0, 1, 2}) == Approx(extent_of(tensor).rms));
  CHECK(along({}) == 3);
  Extents extents;
  const std::vector<std::size_t> last{2}, both{0, 1};
  for (int again = 0; again < 2; ++again) {
    CHECK(extents.largest_rms_along(tensor, last) == along(last));
    CHECK(extents.largest_rms_along(tensor, both) == along(both));
    CHECK(extents.of(tensor).largest == 3);
  }
}

TEST_CASE("one number among millions is found", "[compare]") {
  constexpr std::int64_t count = 3'000'001;
  for (const std::size_t at : {std::size_t{0}, std::size_t{262144}, std::size_t{1234567}, std::size_t{count - 1}}) {
    Tensor zero(DType::f32, {count}), other(DType::f32, {count});
    other.values<float>()[at] = -2;
    CHECK(largest_difference(zero, other) == 2);
    CHECK(extent_of(other).largest == 2);
    CHECK(extent_of(other).rms == std::sqrt(4.0 / count));
  }
}

TEST_CASE("whole numbers are equal to their reference or not", "[compare]") {
  const Tensor places = Tensor::of<std::int32_t>(Shape{3}, std::vector<std::int32_t>{4, -1, 16777217});
  CHECK(largest_difference(places, std::vector<double>{4, -1, 16777217}) == 0);
  CHECK(std::isinf(largest_difference(places, std::vector<double>{4, -1, 16777216})));
}

}  // namespace concord::test
