// Activations and elementwise functions against their textbook formulas, at ordinary points, at kinks, and far out.
#include <cmath>
#include <limits>
#include <numbers>

#include "concord/ops/pointwise.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Function {
  std::string name;
  Value (*build)(Value);
  double (*reference)(double);
  double low = -8, high = 8;
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double clamped(double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }

const std::vector<Function> kFunctions = {
    {"relu", [](Value x) { return relu(x); }, [](double x) { return std::max(x, 0.0); }},
    {"leaky_relu", [](Value x) { return leaky_relu(x, 0.25F); }, [](double x) { return x > 0 ? x : 0.25 * x; }},
    {"elu", [](Value x) { return elu(x, 1.5F); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }},
    {"sigmoid", [](Value x) { return sigmoid(x); }, logistic},
    {"tanh", [](Value x) { return tanh(x); }, [](double x) { return std::tanh(x); }},
    {"silu", [](Value x) { return silu(x); }, [](double x) { return x * logistic(x); }},
    {"gelu", [](Value x) { return gelu(x); },
     [](double x) { return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2); }},
    {"gelu_tanh", [](Value x) { return gelu_tanh(x); },
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }},
    {"softplus", [](Value x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }},
    {"hard_sigmoid", [](Value x) { return hard_sigmoid(x); }, clamped},
    {"hard_swish", [](Value x) { return hard_swish(x); }, [](double x) { return x * clamped(x); }},
    {"exp", [](Value x) { return exp(x); }, [](double x) { return std::exp(x); }},
    {"log", [](Value x) { return log(x); }, [](double x) { return std::log(x); }, 0.1, 20},
    {"sqrt", [](Value x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.1, 20},
    {"abs", [](Value x) { return abs(x); }, [](double x) { return std::abs(x); }},
    {"square", [](Value x) { return square(x); }, [](double x) { return x * x; }},
    {"negate", [](Value x) { return -x; }, [](double x) { return -x; }},
};

TEST_CASE("activations and functions follow their formulas and slopes", "[ops][functions]") {
  // All in one graph: each is its own operator, and the program is compiled once a device.
  Case test{.name = "all functions",
            .inputs = {},
            .build =
                [](const std::vector<Value>& x) {
                  std::vector<Value> results;
                  for (std::size_t i = 0; i < kFunctions.size(); ++i) results.push_back(kFunctions[i].build(x[i]));
                  return results;
                },
            .reference =
                [](const std::vector<Array>& x) {
                  std::vector<Array> results = x;
                  for (std::size_t i = 0; i < kFunctions.size(); ++i) {
                    for (double& v : results[i].values) v = kFunctions[i].reference(v);
                  }
                  return results;
                },
            .scale = Scale::each,
            .tolerance = 4e-6};
  for (const Function& function : kFunctions) {
    test.inputs.push_back(
        {uniform({5, 11}, static_cast<std::uint32_t>(test.inputs.size()), function.low, function.high)});
  }
  check(test);
}

TEST_CASE("slopes at kinks are PyTorch's, and nothing overflows far out", "[ops][functions]") {
  const double nan = std::nan("");
  struct Point {
    std::string name;
    Value (*build)(Value);
    double at, value, slope;
  };
  const std::vector<Point> points = {
      {"relu", [](Value x) { return relu(x); }, 0, 0, 0},
      {"relu", [](Value x) { return relu(x); }, nan, nan, 0},
      {"leaky_relu", [](Value x) { return leaky_relu(x, 0.25F); }, 0, 0, 0.25},
      {"elu", [](Value x) { return elu(x); }, 0, 0, 1},
      {"elu", [](Value x) { return elu(x); }, 1e4, 1e4, 1},
      {"elu", [](Value x) { return elu(x); }, -1e4, -1, 0},
      {"abs", [](Value x) { return abs(x); }, 0, 0, 0},
      {"clamp", [](Value x) { return clamp(x, -1, 1); }, 1, 1, 1},
      {"clamp", [](Value x) { return clamp(x, -1, 1); }, -1, -1, 1},
      {"clamp", [](Value x) { return clamp(x, -1, 1); }, 2, 1, 0},
      {"hard_sigmoid", [](Value x) { return hard_sigmoid(x); }, -3, 0, 0},
      {"hard_sigmoid", [](Value x) { return hard_sigmoid(x); }, 3, 1, 0},
      {"hard_swish", [](Value x) { return hard_swish(x); }, -3, 0, 0},
      {"hard_swish", [](Value x) { return hard_swish(x); }, 3, 3, 1},
      {"sigmoid", [](Value x) { return sigmoid(x); }, -1e4, 0, 0},
      {"sigmoid", [](Value x) { return sigmoid(x); }, 1e4, 1, 0},
      {"silu", [](Value x) { return silu(x); }, -1e4, 0, 0},
      {"softplus", [](Value x) { return softplus(x); }, 1e4, 1e4, 1},
      {"softplus", [](Value x) { return softplus(x); }, -1e4, 0, 0},
      {"gelu", [](Value x) { return gelu(x); }, -1e4, 0, 0},
      {"gelu", [](Value x) { return gelu(x); }, 1e4, 1e4, 1},
      {"gelu_tanh", [](Value x) { return gelu_tanh(x); }, -1e4, 0, 0},
      {"gelu_tanh", [](Value x) { return gelu_tanh(x); }, 1e4, 1e4, 1},
      {"tanh", [](Value x) { return tanh(x); }, -1e4, -1, 0},
  };
  std::vector<Input> inputs;
  for (const Point& point : points) inputs.push_back({Array({}, {point.at})});
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, inputs, [&](const std::vector<Value>& x) {
      std::vector<Value> outputs;
      for (std::size_t i = 0; i < points.size(); ++i) outputs.push_back(points[i].build(x[i]));
      for (std::size_t i = 0; i < points.size(); ++i) {
        outputs.push_back(gradient(outputs[i], std::vector{x[i]}).front());
      }
      return outputs;
    });
    for (std::size_t i = 0; i < points.size(); ++i) {
      INFO(points[i].name << " at " << points[i].at);
      const double value = to_array(results[i]).values[0];
      const double slope = to_array(results[points.size() + i]).values[0];
      if (std::isnan(points[i].value)) {
        CHECK(std::isnan(value));
      } else {
        CHECK(value == Approx(points[i].value).margin(1e-12));
      }
      CHECK(slope == Approx(points[i].slope).margin(1e-6));
    }
  }
}

TEST_CASE("gelu keeps its digits where 1 + erf cancels", "[ops][functions]") {
  check({.name = "far left",
         .inputs = {{Array({3}, {-7.2, -6.5, -5})}},
         .build = [](const std::vector<Value>& x) { return std::vector{gelu(x[0]) * 1e9F}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y = x[0];
               for (double& v : y.values) v = 1e9 * 0.5 * v * std::erfc(-v * std::numbers::sqrt2 / 2);
               return std::vector{y};
             },
         .scale = Scale::each,
         .tolerance = 1e-5,
         .gradient = false});
}

}  // namespace
TEST_CASE("whole numbers stay whole, as in PyTorch", "[ops][pointwise]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    Graph graph;
    const Value i = graph.input("i", {DType::i32, {3}}), x = graph.input("x", {DType::f32, {3}});
    const std::vector<Value> whole{i + 1, 1 - i, i * std::int64_t{2}, abs(i), square(i), where(i, i, i + i)};
    const std::vector<Value> floating{x + 1, 2 * x, i + 1.0F, i / 2, where(i, x, i)};
    for (const Value& value : whole) CHECK(value.dtype() == DType::i32);
    for (const Value& value : floating) CHECK(value.dtype() == DType::f32);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, whole, variables);
    program.write("i", Tensor::of<std::int32_t>(Shape{3}, std::vector<std::int32_t>{-2, 0, 5}));
    program.run();
    const std::vector<std::vector<std::int32_t>> expected{{-1, 1, 6}, {3, 1, -4}, {-4, 0, 10},
                                                          {2, 0, 5},  {4, 0, 25}, {-2, 0, 5}};
    for (std::size_t k = 0; k < whole.size(); ++k) {
      const Tensor result = program.read(whole[k]);
      const auto values = result.values<std::int32_t>();
      CHECK(std::vector<std::int32_t>(values.begin(), values.end()) == expected[k]);
    }
  }
}

}  // namespace concord::test
