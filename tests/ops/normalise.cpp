// Batch normalisation with batch statistics against its definition.
#include "concord/ops/normalise.hpp"

#include <cmath>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr double kEpsilon = 1e-5F;

/// dst, mean, variance.
std::vector<Array> batch_norm_of(const Array& src, const Array& scale, const Array& shift) {
  const std::int64_t channels = src.shape[1];
  const std::int64_t inner = src.shape.elements() / (src.shape[0] * channels);
  const auto channel = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % channels);
  };
  const double count = static_cast<double>(src.shape[0] * inner);
  Array mean(Shape{channels}), variance(Shape{channels}), dst = src;
  for (std::size_t i = 0; i < src.values.size(); ++i) mean.values[channel(i)] += src.values[i] / count;
  for (std::size_t i = 0; i < src.values.size(); ++i) {
    variance.values[channel(i)] += std::pow(src.values[i] - mean.values[channel(i)], 2) / count;
  }
  for (std::size_t i = 0; i < src.values.size(); ++i) {
    const std::size_t c = channel(i);
    dst.values[i] =
        (src.values[i] - mean.values[c]) / std::sqrt(variance.values[c] + kEpsilon) * scale.values[c] + shift.values[c];
  }
  return {dst, mean, variance};
}

Case norm_case(const Array& src, double tolerance) {
  const Shape channels{src.shape[1]};
  return {.name = src.shape.str(),
          .inputs = {{src}, {uniform(channels, 2, 0.5, 2)}, {normal(channels, 3)}},
          .build = [](const std::vector<Value>& x) { return std::vector{batch_norm(x[0], x[1], x[2]).dst}; },
          .reference = [](const std::vector<Array>& x) { return std::vector{batch_norm_of(x[0], x[1], x[2])[0]}; },
          .tolerance = tolerance,
          .gradient_tolerance = 2e-5};
}

TEST_CASE("batch_norm normalises each channel", "[ops][normalise]") {
  for (const Shape& shape : {Shape{4, 3, 5, 5}, {8, 5}, {2, 3, 7}, {1, 2, 2, 1}, {3, 17, 3, 2}, {2, 1, 33, 3}}) {
    check(norm_case(normal(shape, 1), 1e-6));
  }
}

TEST_CASE("batch_norm of values far from zero", "[ops][normalise]") {
  Array src = normal({4, 2, 6, 6}, 4);
  for (double& v : src.values) v = static_cast<float>(v + 1000);
  Case test = norm_case(src, 2e-4);  // the inputs carry 6e-5 of rounding themselves
  test.gradient_tolerance = 1e-3;
  check(test);
}

TEST_CASE("batch_norm hands out mean and biased variance", "[ops][normalise]") {
  check({.name = "statistics",
         .inputs = {{integers({2, 3, 4, 4}, 1)}, {integers({3}, 2)}, {integers({3}, 3)}},
         .build =
             [](const std::vector<Value>& x) {
               const BatchNormResult result = batch_norm(x[0], x[1], x[2]);
               return std::vector{result.mean, result.variance};
             },
         .reference =
             [](const std::vector<Array>& x) {
               const auto all = batch_norm_of(x[0], x[1], x[2]);
               return std::vector{all[1], all[2]};
             },
         .tolerance = 3e-7});
  check({.name = "a constant channel",
         .inputs = {{Array({2, 1, 2}, {3, 3, 3, 3})}, {integers({1}, 2)}, {integers({1}, 3)}},
         .build =
             [](const std::vector<Value>& x) {
               const BatchNormResult result = batch_norm(x[0], x[1], x[2]);
               return std::vector{result.dst, result.mean, result.variance};
             },
         .reference = [](const std::vector<Array>& x) { return batch_norm_of(x[0], x[1], x[2]); },
         .scale = Scale::exact,
         .gradient = false});
}

TEST_CASE("batch_norm refuses what does not fit", "[ops][normalise]") {
  const auto error_of = [](const Shape& src, const Shape& scale) {
    return shape_error({{DType::f32, src}, {DType::f32, scale}},
                       [](const std::vector<Value>& x) { return std::vector{batch_norm(x[0], x[1], x[1]).dst}; });
  };
  CHECK_THAT(error_of({4, 3, 2, 2}, {4}), contains("[4, 3, 2, 2]") && contains("f32 [4]"));
  CHECK_THAT(error_of({1, 3}, {3}), contains("[1, 3]"));
  CHECK_THAT(error_of({0, 3, 2, 2}, {3}), contains("[0, 3, 2, 2]"));
  CHECK_THAT(error_of({5}, {5}), contains("[5]"));
}

}  // namespace
}  // namespace concord::test
