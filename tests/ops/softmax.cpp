// Softmax, log-softmax and cross-entropy against their definitions.
#include "concord/ops/softmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Softmax over `axis`, or its logarithm.
Array softmax_of(const Array& src, std::int64_t axis, bool log) {
  Array dst = src;
  const std::int64_t size = src.shape[axis];
  const std::int64_t stride = src.shape.strides()[src.shape.index_of(axis)];
  for (std::int64_t i = 0; i < src.shape.elements(); ++i) {
    if (i / stride % size != 0) continue;  // `i` begins a row
    const auto at = [&](std::int64_t k) { return static_cast<std::size_t>(i + k * stride); };
    double most = -1e300, total = 0;
    for (std::int64_t k = 0; k < size; ++k) most = std::max(most, src.values[at(k)]);
    for (std::int64_t k = 0; k < size; ++k) total += std::exp(src.values[at(k)] - most);
    for (std::int64_t k = 0; k < size; ++k) {
      const double shifted = src.values[at(k)] - most;
      dst.values[at(k)] = log ? shifted - std::log(total) : std::exp(shifted) / total;
    }
  }
  return dst;
}

Case softmax_case(const Array& src, std::int64_t axis) {
  return {.name = fmt::format("{} over {}", src.shape.str(), axis),
          .inputs = {{src}},
          .build =
              [axis](const std::vector<Value>& x) {
                return std::vector{softmax(x[0], axis), log_softmax(x[0], axis)};
              },
          .reference =
              [axis](const std::vector<Array>& x) {
                return std::vector{softmax_of(x[0], axis, false), softmax_of(x[0], axis, true)};
              },
          .tolerance = 1.2e-6};
}

TEST_CASE("softmax and log_softmax over any axis", "[ops][softmax]") {
  const std::vector<std::pair<Shape, std::int64_t>> cases = {{{4, 10}, -1}, {{4, 10}, 0},      {{3, 4, 5}, 1},
                                                             {{2, 1}, 1},   {{2, 3, 2, 2}, 1}, {{1, 600}, 1},
                                                             {{7}, 0},      {{5, 33}, 1}};
  for (const auto& [shape, axis] : cases) check(softmax_case(normal(shape, 1, 2), axis));
}

TEST_CASE("softmax does not overflow", "[ops][softmax]") {
  Case test = softmax_case(Array({3, 4}, {1e4, -1e4, 0, 1e4, -1e4, -1e4, -1e4, -9999, 3e38, 1, 2, 3}), 1);
  test.gradient = false;  // flat everywhere
  check(test);
  test = softmax_case(normal({4, 9}, 2, 1e4), 1);
  test.gradient = false;
  check(test);
}

double smoothed(double hard, double smoothing, std::int64_t classes) {
  return (1 - smoothing) * hard + smoothing / static_cast<double>(classes);
}

Array cross_entropy_of(const Array& logits, const Array& probabilities, double smoothing) {
  const Array log_p = softmax_of(logits, 1, true);
  Array loss(Shape{logits.shape[0]});
  for (std::int64_t n = 0; n < logits.shape[0]; ++n) {
    for (std::int64_t c = 0; c < logits.shape[1]; ++c) {
      loss.values[static_cast<std::size_t>(n)] -=
          smoothed(probabilities.at({n, c}), smoothing, logits.shape[1]) * log_p.at({n, c});
    }
  }
  return loss;
}

Array one_hot(const Array& labels, std::int64_t classes) {
  Array hot(Shape{labels.shape[0], classes});
  for (std::int64_t n = 0; n < labels.shape[0]; ++n) {
    hot.at({n, static_cast<std::int64_t>(labels.values[static_cast<std::size_t>(n)])}) = 1;
  }
  return hot;
}

TEST_CASE("cross-entropy with class indices", "[ops][softmax]") {
  for (const auto& [rows, classes] : {std::pair{5, 10}, {1, 2}, {3, 1}, {2, 300}}) {
    for (const float smoothing : {0.0F, 0.1F}) {
      Array labels(Shape{rows});
      for (std::size_t n = 0; n < labels.values.size(); ++n) {
        labels.values[n] = static_cast<double>((7 * n + 1) % static_cast<std::size_t>(classes));
      }
      check(
          {.name = fmt::format("[{}, {}] smoothing {}", rows, classes, smoothing),
           .inputs = {{normal({rows, classes}, 1, 2)}, {labels, DType::i32}},
           .build = [=](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1], smoothing)}; },
           .reference =
               [=](const std::vector<Array>& x) {
                 return std::vector{cross_entropy_of(x[0], one_hot(x[1], x[0].shape[1]), smoothing)};
               },
           .tolerance = 1.2e-6});
    }
  }
}

TEST_CASE("cross-entropy with probabilities, which need not sum to one", "[ops][softmax]") {
  for (const float smoothing : {0.0F, 0.25F}) {
    check(
        {.name = fmt::format("smoothing {}", smoothing),
         .inputs = {{normal({4, 6}, 1)}, {uniform({4, 6}, 2, 0, 0.5)}},
         .build = [=](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1], smoothing)}; },
         .reference = [=](const std::vector<Array>& x) { return std::vector{cross_entropy_of(x[0], x[1], smoothing)}; },
         .tolerance = 1.2e-6});
  }
}

TEST_CASE("cross-entropy of large logits, and of labels out of range", "[ops][softmax]") {
  const Input logits{Array({4, 3}, {1e4, -1e4, 0, -1e4, 1e4, 0, 1, 2, 3, 1, 2, 3})};
  const Input labels{Array({4}, {0, 0, 3, -1}), DType::i32};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {logits, labels},
                             [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; });
    const Array loss = to_array(results[0]);
    CHECK(loss.values[0] == 0);
    CHECK(loss.values[1] == 2e4);
    CHECK(std::isnan(loss.values[2]));
    CHECK(std::isnan(loss.values[3]));
  }
}

TEST_CASE("cross-entropy of logits without end is what its formula gives", "[ops][softmax]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Input logits{Array({6, 3}, {-inf, 1, 1, -inf, 1, 1, inf, 1, 1, -inf, -inf, -inf, nan, 1, 1, 1, 1, nan})};
  const Input labels{Array({6}, {1, 0, 0, 0, 1, 1}), DType::i32};
  const Input probabilities{Array({6, 3}, {0, 1, 0, 0.5, 0.5, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0})};
  const auto losses = [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; };
  for (const DevicePtr& device : devices()) {
    for (const Input& target : {labels, probabilities}) {
      INFO("device " << device->info().id << (target.dtype == DType::i32 ? ", labels" : ", probabilities"));
      const Array loss = to_array(run(device, {logits, target}, losses)[0]);
      CHECK(loss.values[0] == Approx(std::numbers::ln2));  // the class that cannot be has probability 0
      CHECK(loss.values[1] == inf);
      for (std::size_t row = 2; row < 6; ++row) CHECK(std::isnan(loss.values[row]));
    }
  }
}

TEST_CASE("a small loss is as exact as a large one", "[ops][softmax]") {
  constexpr std::int64_t kClasses = 1000;
  Array logits({1, kClasses}, std::vector<double>(kClasses, -14));
  logits.values[7] = 0;
  const Input labels{Array({1}, {7}), DType::i32};
  const double expected = std::log1p((kClasses - 1) * std::exp(-14.0));
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {{logits}, labels},
                             [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; });
    CHECK(std::abs(to_array(results[0]).values[0] - expected) < 4e-5 * expected);
  }
}

TEST_CASE("softmax and cross-entropy refuse what does not fit", "[ops][softmax]") {
  const auto error_of = [](const TensorSpec& logits, const TensorSpec& target) {
    return shape_error({logits, target},
                       [](const std::vector<Value>& x) { return std::vector{cross_entropy_rows(x[0], x[1])}; });
  };
  CHECK_THAT(error_of({DType::f32, {4, 3}}, {DType::i32, {3}}), contains("[4, 3]") && contains("i32 [3]"));
  CHECK_THAT(error_of({DType::f32, {4, 3}}, {DType::f32, {4}}), contains("f32 [4]"));
  CHECK_THAT(error_of({DType::f32, {0, 3}}, {DType::i32, {0}}), contains("[0, 3]"));
  CHECK_THAT(error_of({DType::f32, {4}}, {DType::i32, {4}}), contains("[4]"));
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}});
  const Value t = graph.input("t", {DType::i32, {4}});
  CHECK_THROWS_AS(softmax(x, 2), ShapeError);
  CHECK_THROWS_AS(cross_entropy_rows(x, t, 1.5F), ArgumentError);
  const Value loss = cross_entropy_rows(x, t);
  const Value largest(&graph, loss.node_id(), 1);
  CHECK_THROWS_AS(gradient(sum(largest), std::vector{x}), NotSupported);
}

}  // namespace
}  // namespace concord::test
