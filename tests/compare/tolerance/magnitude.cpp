// magnitude_of(), largest_difference() and difference_of(): values that are not finite, tensors that several threads
// share, and which of many elements is the worst.
#include "concord/compare/tolerance/magnitude.hpp"

#include <cmath>
#include <random>

#include "concord_test.hpp"

namespace concord::test {
namespace {

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

struct Far {
  double relative = 0, ulps = 0;
  std::size_t at = 0;
};

/// By frexp: a number of f32 has 24 bits.
template <class Number>
Far farthest(std::span<const float> a, std::span<const Number> b, double least) {
  Far far;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::max(std::abs(static_cast<double>(b[i])), least), error = std::abs(a[i] - double{b[i]});
    int exponent = 0;
    std::frexp(size, &exponent);
    const double ulps = std::ldexp(error, 24 - exponent);
    far.relative = std::max(far.relative, error / size);
    if (ulps > far.ulps) far = {far.relative, ulps, i};
  }
  return far;
}

void check_farthest(const Difference& found, const Far& expected) {
  CHECK(found.relative == Approx(expected.relative));
  CHECK(found.ulps == Approx(expected.ulps));
  CHECK(found.at == expected.at);
}

}  // namespace

TEST_CASE("errors of elements are told in the ULPs of each", "[compare]") {
  const float above = std::nextafter(1.0F, 2.0F), below = std::nextafter(4.0F, 0.0F);
  const Difference one = difference_of(floats({5, above, 3}), floats({5, 1, 3}), 0);
  CHECK(one.largest == 0x1p-23);
  CHECK(one.relative == 0x1p-23);
  CHECK(one.ulps == 1);
  CHECK(one.at == 1);
  CHECK(difference_of(floats({below}), floats({4}), 0).ulps == 0.5);  // of 4, below which they lie closer
  const Difference small = difference_of(floats({100.5F, 1e-3F}), floats({100, 2e-3F}), 0);
  CHECK(small.largest == 0.5);
  CHECK(small.relative == Approx(0.5));
  CHECK(small.ulps == Approx(1e-3 / 0x1p-32));  // 2e-3 is 2^-9 and more
  CHECK(small.at == 1);
  CHECK(difference_of(floats({1, 2}), floats({1, 2}), 0).ulps == 0);
}

TEST_CASE("an element smaller than the least counts as that large", "[compare]") {
  const Difference d = difference_of(floats({1e-6F, 100}), floats({-1e-6F, 101}), 0.5);
  CHECK(d.relative == Approx(1.0 / 101));
  CHECK(d.ulps == Approx(0x1p17));
  CHECK(d.at == 1);
  CHECK(difference_of(floats({1e-6F}), floats({-1e-6F}), 0.5).relative == Approx(4e-6));
  CHECK(difference_of(floats({0x1p-126F}), floats({0}), 0).relative == 1);
}

TEST_CASE("the worst of many elements is found, wherever it is", "[compare]") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::int64_t size : {1, 15, 16, 17, 1023, 1024, 1040, 5003, 300'007}) {
    INFO(size << " elements");
    Tensor a(DType::f32, {size}), b(DType::f32, {size});
    std::vector<double> exact;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
      const float value = normal(random);
      a.values<float>()[i] = value * (1 + 1e-6F * normal(random));
      b.values<float>()[i] = value;
      exact.push_back(static_cast<double>(value) * (1 + 1e-9));
    }
    const auto values = a.values<float>();
    check_farthest(difference_of(a, b, 1e-2),
                   farthest(std::span<const float>(values), std::span<const float>(b.values<float>()), 1e-2));
    check_farthest(difference_of(a, exact, 1e-2),
                   farthest(std::span<const float>(values), std::span<const double>(exact), 1e-2));
    CHECK(difference_of(a, b, 1e-2).largest == largest_difference(a, b));
    b.values<float>()[static_cast<std::size_t>(size) / 2] = NAN;
    const Difference lost = difference_of(a, b, 1e-2);
    CHECK(lost.at == static_cast<std::size_t>(size) / 2);
    CHECK((std::isinf(lost.largest) && std::isinf(lost.relative) && std::isinf(lost.ulps)));
  }
  const Tensor ones = Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 1, 1});
  const Tensor other = Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 1, 2});
  CHECK(difference_of(ones, other, 0).at == 2);
  CHECK(std::isinf(difference_of(ones, other, 0).ulps));
  CHECK(difference_of(ones, std::vector<double>{1, 2, 1}, 0).at == 1);
  CHECK(difference_of(ones, ones, 0).largest == 0);
  CHECK(difference_of(floats({1, INFINITY, NAN}), floats({1, INFINITY, NAN}), 0).ulps == 0);
  CHECK(difference_of(floats({2e38F, 1}), floats({-2e38F, 1}), 0).relative == Approx(2));  // beyond f32 on the way
  CHECK(std::isinf(difference_of(floats({3e38F}), std::vector<double>{4e38}, 0).ulps));
}

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

TEST_CASE("an magnitude leaves out what is not finite", "[compare]") {
  const Magnitude magnitude = magnitude_of(floats({3, -4, NAN, -INFINITY}));
  CHECK(magnitude.largest == 4);
  CHECK(magnitude.rms == 2.5);
  CHECK(magnitude_of(floats({})).rms == 0);
}

TEST_CASE("the rms along axes is that of the largest terms of a sum", "[compare]") {
  Tensor tensor(DType::f32, {2, 3, 40});
  for (std::size_t i = 0; i < 3; ++i) tensor.values<float>()[40 * i + 7] = static_cast<float>(i + 1);
  const auto along = [&](std::vector<std::size_t> axes) { return largest_rms_along(tensor, axes); };
  CHECK(along({2}) == Approx(3 / std::sqrt(40.0)));
  CHECK(along({1}) == Approx(std::sqrt(14.0 / 3)));
  CHECK(along({0, 1}) == Approx(std::sqrt(14.0 / 6)));
  CHECK(along({0, 2}) == Approx(3 / std::sqrt(80.0)));
  CHECK(along({0, 1, 2}) == Approx(magnitude_of(tensor).rms));
  CHECK(along({}) == 3);
  Magnitudes magnitudes;
  const std::vector<std::size_t> last{2}, both{0, 1};
  for (int again = 0; again < 2; ++again) {
    CHECK(magnitudes.largest_rms_along(tensor, last) == along(last));
    CHECK(magnitudes.largest_rms_along(tensor, both) == along(both));
    CHECK(magnitudes.of(tensor).largest == 3);
  }
}

TEST_CASE("one number among millions is found", "[compare]") {
  constexpr std::int64_t count = 3'000'001;
  for (const std::size_t at : {std::size_t{0}, std::size_t{262144}, std::size_t{1234567}, std::size_t{count - 1}}) {
    Tensor zero(DType::f32, {count}), other(DType::f32, {count});
    other.values<float>()[at] = -2;
    CHECK(largest_difference(zero, other) == 2);
    CHECK(magnitude_of(other).largest == 2);
    CHECK(magnitude_of(other).rms == std::sqrt(4.0 / count));
  }
}

TEST_CASE("whole numbers are equal to their reference or not", "[compare]") {
  const Tensor places = Tensor::of<std::int32_t>(Shape{3}, std::vector<std::int32_t>{4, -1, 16777217});
  CHECK(largest_difference(places, std::vector<double>{4, -1, 16777217}) == 0);
  CHECK(std::isinf(largest_difference(places, std::vector<double>{4, -1, 16777216})));
}

}  // namespace concord::test
