// The backward pass as a whole: values used twice, values the loss does not depend on, gradients of gradients.
#include "concord/ops/gradient.hpp"

#include <cmath>

#include "concord/ops/pointwise.hpp"
#include "files.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

TEST_CASE("a value used several times gets the sum of its gradients", "[ops][gradient]") {
  check({.name = "x·exp(x) + x",
         .inputs = {{normal({3, 4}, 1)}},
         .build = [](const std::vector<Value>& x) { return std::vector{x[0] * exp(x[0]) + x[0]}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y = x[0];
               for (double& v : y.values) v = v * std::exp(v) + v;
               return std::vector{y};
             }});
}

// x in pieces [begin, end) along `axis`, piece i times i + 2, all added up.
Case pieces(const std::string& name, std::int64_t axis,
            const std::vector<std::pair<std::int64_t, std::int64_t>>& pieces) {
  return {.name = name,
          .inputs = {{normal({3, 6}, 1)}},
          .build =
              [=](const std::vector<Value>& x) {
                Value total = sum(exp(x[0]), {0, 1});
                for (std::size_t i = 0; i < pieces.size(); ++i) {
                  const Value piece = slice(x[0], axis, pieces[i].first, pieces[i].second);
                  total = total + sum(static_cast<float>(i + 2) * piece * piece, {0, 1});
                }
                return std::vector{total};
              },
          .reference =
              [=](const std::vector<Array>& x) {
                Array total(Shape{});
                for (const double v : x[0].values) total.values[0] += std::exp(v);
                for (std::size_t i = 0; i < pieces.size(); ++i) {
                  for (std::int64_t row = 0; row < 3; ++row) {
                    for (std::int64_t column = 0; column < 6; ++column) {
                      const std::int64_t place = axis == 0 ? row : column;
                      const double v = x[0].at({row, column});
                      if (place >= pieces[i].first && place < pieces[i].second)
                        total.values[0] += static_cast<double>(i + 2) * v * v;
                    }
                  }
                }
                return std::vector{total};
              },
          .tolerance = 1e-5};
}

TEST_CASE("gradients of slices add up, whether they fill their axis or not", "[ops][gradient]") {
  check(pieces("in order", 1, {{0, 2}, {2, 5}, {5, 6}}));
  check(pieces("in any order", 1, {{4, 6}, {0, 1}, {1, 4}}));
  check(pieces("of rows", 0, {{0, 1}, {1, 3}}));
  check(pieces("with a gap", 1, {{0, 2}, {3, 6}}));
  check(pieces("not to the end", 1, {{0, 2}, {2, 4}}));
  check(pieces("one over another", 1, {{0, 4}, {3, 6}}));
}

TEST_CASE("gradients of slices that fill their axis are joined without zeros", "[ops][gradient]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{3, 6}});
  const Value loss = sum(exp(slice(x, 1, 0, 2)), {0, 1}) + sum(tanh(slice(x, 1, 2, 6)), {0, 1});
  const Value diff = gradient(loss, std::vector{x})[0];
  CHECK(graph.node(diff.node_id()).op->name() == "concat");
}

TEST_CASE("a small network's gradients are the differences of its loss", "[ops][gradient]") {
  check({.name = "conv, relu, pool, linear, softmax",
         .inputs = {{normal({2, 1, 5, 5}, 1)}, {normal({2, 1, 2, 2}, 2)}, {normal({3, 8}, 3)}},
         .build =
             [](const std::vector<Value>& x) {
               const Value features = max_pool2d(tanh(conv2d(x[0], x[1])), {.kernel = {2, 2}});
               return std::vector{softmax(matmul(flatten(features), x[2], false, true))};
             },
         .reference =
             [](const std::vector<Array>& x) {
               Array result(Shape{2, 3});
               for (std::int64_t n = 0; n < 2; ++n) {
                 std::vector<double> features;
                 for (std::int64_t o = 0; o < 2; ++o)
                   for (std::int64_t py = 0; py < 2; ++py)
                     for (std::int64_t px = 0; px < 2; ++px) {
                       double most = -1e300;
                       for (std::int64_t k = 0; k < 4; ++k) {
                         const std::int64_t cy = 2 * py + k / 2, cx = 2 * px + k % 2;
                         double total = 0;
                         for (std::int64_t j = 0; j < 4; ++j) {
                           total += x[0].at({n, 0, cy + j / 2, cx + j % 2}) * x[1].at({o, 0, j / 2, j % 2});
                         }
                         most = std::max(most, std::tanh(total));
                       }
                       features.push_back(most);
                     }
                 double sum_of = 0;
                 for (std::int64_t c = 0; c < 3; ++c) {
                   double logit = 0;
                   for (std::int64_t k = 0; k < 8; ++k)
                     logit += features[static_cast<std::size_t>(k)] * x[2].at({c, k});
                   result.at({n, c}) = std::exp(logit);
                   sum_of += std::exp(logit);
                 }
                 for (std::int64_t c = 0; c < 3; ++c) result.at({n, c}) /= sum_of;
               }
               return std::vector{result};
             },
         .tolerance = 4e-6});
}

TEST_CASE("gradients of gradients", "[ops][gradient]") {
  check({.name = "slope of the slope of sigmoid",
         .inputs = {{normal({7}, 1)}},
         .build = [](const std::vector<Value>& x) { return std::vector{gradient(sum(sigmoid(x[0])), x).front()}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y = x[0];
               for (double& v : y.values) v = std::exp(-v) / std::pow(1 + std::exp(-v), 2);
               return std::vector{y};
             }});
}

TEST_CASE("names are as before after a gradient that cannot be", "[ops][gradient]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 3, 4}});
  const Value last =
      graph.variable(std::make_shared<Variable>(Variable{"mask", {DType::f32, {1, 1, 3, 3}}, {}, true, {}}));
  const Value seen = attention(x, x, x, {.mask = last});
  CHECK_THROWS_AS(gradient(sum(seen), std::vector{last}), NotSupported);
  CHECK(relu(x).name() == "relu");
}

TEST_CASE("a value that another one's function computes along has no gradient of its own", "[ops][gradient]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}}), gate = sigmoid(x), y = x * gate;
  const std::string why = message_of<NotSupported>([&] { static_cast<void>(gradient(sum(y), {gate})); });
  CHECK_THAT(why, contains("'silu' computes 'sigmoid'") && contains("argument 'x'"));
  CHECK_NOTHROW(gradient(sum(y), {x}));
  CHECK_NOTHROW(gradient(sum(gate * 2.0F), {gate}));
  const Value other = graph.input("other", {DType::f32, {4}}), kept = other * gate;
  CHECK_NOTHROW(gradient(sum(kept), {gate}));
}

TEST_CASE("what the loss does not depend on has zero gradient", "[ops][gradient]") {
  const Input x{integers({3}, 1)};
  for (const DevicePtr& device : devices()) {
    const auto results = run(device, {x, x}, [](const std::vector<Value>& v) {
      return gradient(sum(v[0] * 2.0F), std::vector{v[0], v[1]});
    });
    CHECK(to_array(results[0]).values == std::vector<double>{2, 2, 2});
    CHECK(to_array(results[1]).values == std::vector<double>{0, 0, 0});
  }
  Graph graph;
  CHECK_THROWS_AS(gradient(graph.input("wide", {DType::f32, {3}}), std::vector<Value>{}), ShapeError);
}

}  // namespace
}  // namespace concord::test
