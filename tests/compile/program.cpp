// Programs as a user sees them, on every device of the machine: fusion changes no result, assignments happen at the
// end of a run, traces and checks report what ran.
#include "concord/compile/program.hpp"

#include <cmath>

#include "concord/ops/gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord_test.hpp"
#include "files.hpp"

namespace concord {
namespace {

VariablePtr variable(std::string name, const Tensor& value) {
  return std::make_shared<Variable>(Variable{std::move(name), value.spec(), {}, true, value});
}

Tensor ramp(Shape shape, float step, float start = 0) {
  Tensor tensor(DType::f32, std::move(shape));
  float v = start;
  for (float& x : tensor.values<float>()) {
    x = v;
    v += step;
  }
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("a chain of pointwise operators becomes one launch with the same values", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {5, 7}});
    const Value y = sigmoid(x * 2.0F + 1.0F) - relu(x);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program fused = compile(graph, std::vector{y}, variables);
    Program plain = compile(graph, std::vector{y}, variables, {.fuse = false});
    CHECK(fused.launches() == 1);
    CHECK(plain.launches() == 5);
    for (Program* program : {&fused, &plain}) {
      program->write("x", ramp({5, 7}, 0.25F, -4));
      program->run();
    }
    const std::vector<float> a = floats(fused.read(y)), b = floats(plain.read(y));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-6));
  }
}

TEST_CASE("what depends on variables alone is computed when these change", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    const auto w = variable("w", ramp({3}, 1, 1)), bias = variable("bias", ramp({3}, 0, 2));
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {4, 3}});
    const Value factors = graph.variable(w) * 10.0F + graph.variable(bias);
    const Value y = x * factors + sum(factors, {0}, true);
    Graph training;
    training.assign(training.variable(w), training.variable(w) * 2.0F);

    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, std::vector{y}, variables), step = compile(training, {}, variables);
    CHECK(program.launches() == 1);
    CHECK(compile(graph, std::vector{y}, variables, {.retain = Retain::all}).launches() > 1);
    const auto results = [&] {
      program.write("x", ramp({4, 3}, 0, 1));
      for (int run = 0; run < 2; ++run) program.run();
      return floats(program.read(y));
    };
    CHECK(results()[2] == 32 + 66);  // factors 12, 22, 32
    step.run();
    CHECK(results()[2] == 62 + 126);  // 22, 42, 62
    variables->write("bias", ramp({3}, 1));
    CHECK(results()[2] == 62 + 123);  // 20, 41, 62
    CHECK(program.run_traced().size() == 1);
    step.run();
    CHECK(program.run_traced().size() == 1);
    CHECK(floats(program.read(y))[2] == 122 + 243);  // 40, 81, 122

    // Another set of variables in the same memory.
    const auto view = std::make_shared<Variables>(device, 1);
    for (const VariablePtr& shared : {w, bias}) view->bind(shared->name, shared->spec, variables->require(*shared));
    Program seen = compile(graph, std::vector{y}, view);
    for (const float expected : {122.0F + 243, 242.0F + 483}) {
      seen.write("x", ramp({4, 3}, 0, 1));
      seen.run();
      CHECK(floats(seen.read(y))[2] == expected);
      step.run();
    }
  }
}

TEST_CASE("a program computes from variables that it assigns in every run", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value w = graph.variable(variable("w", ramp({3}, 1, 1)));
    const Value y = w * 3.0F;
    graph.assign(w, w + 1.0F);
    graph.assign(graph.variable(variable("constant", ramp({2}, 1))), full(graph, {2}, 7));
    Program program = compile(graph, std::vector{y}, std::make_shared<Variables>(device, 1));
    program.run();
    program.variables().write("constant", ramp({2}, 1));
    program.run();
    CHECK(floats(program.read(y)) == std::vector<float>{6, 9, 12});
    CHECK(floats(program.variables().read("constant")) == std::vector<float>{7, 7});
  }
}

TEST_CASE("assignments take the values of before the run", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value a = graph.variable(variable("a", ramp({4}, 1)));
    const Value b = graph.variable(variable("b", ramp({4}, 1, 10)));
    graph.assign(a, b);  // a swap, and a counter that reads both
    graph.assign(b, a);
    const Value count = graph.variable(variable("count", ramp({}, 1)));
    graph.assign(count, count + 1.0F);
    const auto variables = std::make_shared<Variables>(device, 1);
    for (const bool retains_all : {false, true}) {
      Program program = compile(graph, {}, variables, {.retain = retains_all ? Retain::all : Retain::outputs});
      program.run();
    }
    Program program = compile(graph, {}, variables);
    program.run();
    CHECK(floats(variables->read("a")) == std::vector<float>{10, 11, 12, 13});
    CHECK(floats(variables->read("b")) == std::vector<float>{0, 1, 2, 3});
    CHECK(floats(variables->read("count")) == std::vector<float>{3});
  }
}

TEST_CASE("a variable read after its update is the old one within the run", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value w = graph.variable(variable("w", ramp({3}, 1, 1)));
    const Value updated = w * 10.0F;
    graph.assign(w, updated);
    const Value later = reduce_max(w);  // added after the update
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, std::vector{later}, variables);
    program.run();
    CHECK(floats(program.read(later)) == std::vector<float>{3});
    CHECK(floats(variables->read("w")) == std::vector<float>{10, 20, 30});
  }
}

TEST_CASE("the result does not depend on retains_all, and every value can be read by name", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {6, 4}});
    const Value w = graph.variable(variable("w", ramp({4, 3}, 0.1F, -0.5F)));
    const Value hidden = relu(matmul(x, w));
    const Value loss = mean(square(hidden));
    const Value dw = gradient(loss, std::vector{w})[0];
    graph.assign(w, w - dw * 0.5F);
    std::vector<std::vector<float>> results;
    for (const bool retains_all : {false, true}) {
      const auto variables = std::make_shared<Variables>(device, 1);
      Program program =
          compile(graph, std::vector{loss}, variables, {.retain = retains_all ? Retain::all : Retain::outputs});
      program.write("x", ramp({6, 4}, 0.2F, -1));
      for (int step = 0; step < 3; ++step) program.run();
      results.push_back(floats(variables->read("w")));
      if (retains_all) {
        CHECK(program.read(hidden.name()).shape() == Shape{6, 3});
        CHECK(program.read(dw).shape() == Shape{4, 3});
      } else {
        CHECK_THROWS_AS(program.read(hidden.name()), ArgumentError);
      }
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(results[0][i] == Approx(results[1][i]).margin(1e-6));
  }
}

TEST_CASE("a traced run times every launch and does the same work", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {8, 16}});
    const Value y = matmul(x, x, false, true);
    Program program = compile(graph, std::vector{y}, std::make_shared<Variables>(device, 1));
    program.write("x", ramp({8, 16}, 0.01F));
    const std::vector<TraceEntry> trace = program.run_traced();
    REQUIRE_FALSE(trace.empty());
    bool found = false;
    for (const TraceEntry& entry : trace) {
      CHECK(entry.seconds > 0);
      if (entry.op == "matmul") {
        found = true;
        CHECK(entry.cost.flops == 2.0 * 8 * 8 * 16);
        CHECK(entry.shapes.find("[8, 16]") != std::string::npos);
      }
    }
    CHECK(found);
  }
}

TEST_CASE("the first value that is not finite is named, and nothing is changed", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {4}});
    const Value w = graph.variable(variable("w", ramp({4}, 1)));
    const Value bad = log(x - 1.0F);
    graph.rename(bad, "the_log");
    graph.assign(w, w + bad);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, {}, variables, {.retain = Retain::all});
    program.write("x", ramp({4}, 1));
    const NonFiniteReport report = program.find_non_finite();
    CHECK(report.found);
    CHECK(report.node == "the_log");
    CHECK(report.value.not_finite == 2);
    REQUIRE_FALSE(report.inputs.empty());
    CHECK_THAT(report.str(), test::contains(report.node) && test::contains(report.inputs[0].name + " in ["));
    CHECK(floats(variables->read("w")) == std::vector<float>{0, 1, 2, 3});
    program.write("x", ramp({4}, 1, 5));
    CHECK_FALSE(program.find_non_finite().found);
  }
}

TEST_CASE("a value that fits nowhere is told before the limits of kernels", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {std::int64_t{1} << 40, 4}});
    const Value w = graph.variable(variable("w", ramp({4, 4}, 1)));
    const Value product = matmul(x, w);
    graph.rename(product, "product");
    const auto variables = std::make_shared<Variables>(device, 1);
    CHECK_THAT(test::message_of<OutOfMemory>([&] { (void)compile(graph, std::vector{product}, variables); }),
               test::contains("'product'") && test::contains("allocates at most"));
  }
}

TEST_CASE("wrong names and shapes are refused", "[compile]") {
  for (const DevicePtr& device : test::devices()) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {4}});
    Program program = compile(graph, std::vector{relu(x)}, std::make_shared<Variables>(device, 1));
    CHECK_THROWS_AS(program.write("y", ramp({4}, 1)), ArgumentError);
    CHECK_THROWS_AS(program.write("x", ramp({5}, 1)), ShapeError);
    CHECK_THROWS_AS(program.variables().read("w"), ArgumentError);
  }
}

TEST_CASE("first values depend on seed and name alone", "[compile]") {
  Variable v{"layer.weight", {DType::f32, {1000}}, {Initializer::Kind::uniform, -2, 3}, true, {}};
  const std::vector<float> a = floats(initial_value(v, 7)), b = floats(initial_value(v, 7));
  CHECK(a == b);
  CHECK(a != floats(initial_value(v, 8)));
  for (const float x : a) CHECK((x >= -2 && x < 3));
  v.name = "other.weight";
  CHECK(a != floats(initial_value(v, 7)));
  v.init = {Initializer::Kind::normal, 5, 2};
  double sum = 0, squares = 0;
  for (const float x : floats(initial_value(v, 7))) {
    sum += x;
    squares += (x - 5) * (x - 5);
  }
  CHECK(sum / 1000 == Approx(5).margin(0.25));
  CHECK(std::sqrt(squares / 1000) == Approx(2).margin(0.2));
}

TEST_CASE("weights that a kernel wants in another layout follow their variable", "[compile]") {
  constexpr std::int64_t kRows = 1100, kIn = 33, kOut = 20;  // rows enough for the CPU to pack the weights
  for (const DevicePtr& device : test::devices()) {
    for (const bool transposed : {false, true}) {
      INFO(device->info().name << (transposed ? " transposed" : ""));
      const Shape shape = transposed ? Shape{kOut, kIn} : Shape{kIn, kOut};
      Graph graph;
      const Value x = graph.input("x", {DType::f32, {kRows, kIn}});
      const Value w = graph.variable(variable("w", ramp(shape, 0.01F)));
      const Value y = matmul(x, w, false, transposed);
      const auto variables = std::make_shared<Variables>(device, 1);
      Program program = compile(graph, std::vector{y}, variables);
      CHECK(program.launches() == 1);
      const Tensor left = ramp({kRows, kIn}, 1e-5F, -1);
      for (const float step : {0.01F, -0.02F, 0.005F}) {
        const Tensor weights = ramp(shape, step, 1);
        variables->write("w", weights);
        program.write("x", left);
        program.run();
        const std::vector<float> got = floats(program.read(y.name())), a = floats(left), b = floats(weights);
        double most = 0;
        for (std::int64_t m = 0; m < kRows; ++m) {
          for (std::int64_t n = 0; n < kOut; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < kIn; ++k) {
              const auto place = static_cast<std::size_t>(transposed ? n * kIn + k : k * kOut + n);
              sum += static_cast<double>(a[static_cast<std::size_t>(m * kIn + k)]) * static_cast<double>(b[place]);
            }
            most = std::max(most, std::abs(sum - static_cast<double>(got[static_cast<std::size_t>(m * kOut + n)])));
          }
        }
        CHECK(most < 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace concord
