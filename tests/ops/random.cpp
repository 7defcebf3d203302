// Random operators: the same bits on every device, the distributions they promise, streams that do not meet.
#include "concord/ops/random.hpp"

#include <shared/philox.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr std::int64_t kCount = 20001;

/// Runs `build` on one device for as many steps, the random state advanced after each.
std::vector<std::vector<Tensor>> run_steps(const DevicePtr& device, int steps, std::uint64_t seed,
                                           const std::function<std::vector<Value>(Graph&)>& build) {
  Graph graph;
  const std::vector<Value> outputs = build(graph);
  advance_random(graph);
  const auto program = std::make_shared<Program>(compile(graph, outputs, std::make_shared<Variables>(device, seed)));
  keep(program);
  std::vector<std::vector<Tensor>> all;
  for (int step = 0; step < steps; ++step) {
    program->run();
    std::vector<Tensor> results;
    for (const Value& output : outputs) results.push_back(program->read(output));
    all.push_back(std::move(results));
  }
  return all;
}

std::uint32_t purpose_of(const Value& value) { return dynamic_cast<const ops::Random&>(*value.node().op).purpose(); }

struct Moments {
  double mean = 0, deviation = 0, least = 1e300, most = -1e300;
};
Moments moments(const Tensor& tensor) {
  Moments m;
  const auto values = tensor.values<float>();
  for (const float v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.least = std::min(m.least, static_cast<double>(v));
    m.most = std::max(m.most, static_cast<double>(v));
  }
  for (const float v : values) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST_CASE("random numbers are those of the counter stream, bit for bit", "[ops][random]") {
  const std::uint64_t seed = 123456789;
  Graph naming;
  const std::uint32_t uniform_purpose = purpose_of(random_uniform(naming, {8}));
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto steps = run_steps(device, 2, seed, [](Graph& graph) {
      return std::vector{random_uniform(graph, {3, 667}), random_normal(graph, {3, 667}, 2, 0.5F)};
    });
    const std::uint64_t key = (seed & 0xFFFFFF) | ((((seed >> 24) ^ (seed >> 48)) & 0xFFFFFF) << 32);
    Graph graph;
    random_uniform(graph, {8});
    const std::uint32_t normal_purpose = purpose_of(random_normal(graph, {8}));
    for (std::uint32_t step = 0; step < 2; ++step) {
      Tensor expected(DType::f32, {3, 667});
      for (std::size_t i = 0; i < 2001; ++i) {
        expected.values<float>()[i] = philox_uniform(i, uniform_purpose, step, key);
      }
      CHECK(difference(steps[step][0], expected) == "");
      double worst = 0;
      for (std::size_t i = 0; i < 2001; ++i) {
        const double u = 1.0 - philox_uniform(2 * i, normal_purpose, step, key);
        const double v = philox_uniform(2 * i + 1, normal_purpose, step, key);
        const double z = 2 + 0.5 * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
        worst = std::max(worst, std::abs(z - steps[step][1].values<float>()[i]));
      }
      CHECK(worst < 4e-6);
    }
  }
}

TEST_CASE("uniform and normal numbers have their moments", "[ops][random]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run_steps(device, 1, 5, [](Graph& graph) {
      return std::vector{random_uniform(graph, {kCount}), random_uniform(graph, {kCount}, -3, 5),
                         random_normal(graph, {kCount}), random_normal(graph, {kCount}, -1, 2)};
    })[0];
    const Moments unit = moments(results[0]);
    CHECK(unit.least >= 0);
    CHECK(unit.most < 1);
    CHECK(unit.mean == Approx(0.5).margin(0.01));
    CHECK(unit.deviation == Approx(std::sqrt(1.0 / 12)).margin(0.01));
    const Moments wide = moments(results[1]);
    CHECK(wide.least >= -3);
    CHECK(wide.most < 5);
    CHECK(wide.mean == Approx(1).margin(0.1));
    const Moments standard = moments(results[2]);
    CHECK(standard.mean == Approx(0).margin(0.03));
    CHECK(standard.deviation == Approx(1).margin(0.03));
    CHECK(std::abs(standard.most) < 6);
    const Moments other = moments(results[3]);
    CHECK(other.mean == Approx(-1).margin(0.06));
    CHECK(other.deviation == Approx(2).margin(0.06));
  }
}

TEST_CASE("the number of a run begins again where fp32 no longer counts", "[ops][random]") {
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const Value numbers = random_uniform(graph, {4});
    advance_random(graph);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, std::vector{numbers}, variables);
    program.run();
    Tensor state = variables->read(kRandomState);
    for (const std::int32_t step : {kMostRuns - 2, kMostRuns - 1}) {
      state.values<std::int32_t>()[2] = step;
      variables->write(kRandomState, state);
      program.run();
      CHECK(variables->read(kRandomState).values<std::int32_t>()[2] == (step + 1) % kMostRuns);
    }
  }
}

TEST_CASE("streams differ by purpose, step and seed, and repeat with them", "[ops][random]") {
  const auto build = [](Graph& graph) { return std::vector{random_uniform(graph, {64}), random_uniform(graph, {64})}; };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto first = run_steps(device, 2, 1, build);
    const auto again = run_steps(device, 2, 1, build);
    const auto other = run_steps(device, 1, 2, build);
    CHECK(difference(first[1][0], again[1][0]) == "");
    CHECK(difference(first[0][0], first[0][1]) != "");
    CHECK(difference(first[0][0], first[1][0]) != "");
    CHECK(difference(first[0][0], other[0][0]) != "");
  }
}

TEST_CASE("random classes come as often as the softmax of their logits says", "[ops][random]") {
  const std::vector<float> logits{1, -2, 0, -100, 2};
  const auto build = [&](Graph& graph) {
    const Tensor row = Tensor::of(Shape{1, 5}, logits);
    const Value given = graph.variable(std::make_shared<Variable>(Variable{"logits", row.spec(), {}, false, row}));
    return std::vector{random_categorical(given + full(graph, Shape{kCount, 5}, 0))};
  };
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto steps = run_steps(device, 2, 7, build);
    REQUIRE(steps[0][0].spec() == TensorSpec{DType::i32, Shape{kCount}});
    CHECK(difference(steps[0][0], steps[1][0]) != "");
    std::vector<double> parts(5);
    for (const std::int32_t c : steps[0][0].values<std::int32_t>())
      parts.at(static_cast<std::size_t>(c)) += 1.0 / kCount;
    for (std::size_t c = 0; c < 5; ++c) {
      const double expected = std::exp(logits[c]) / sum;
      INFO("class " << c);
      CHECK(std::abs(parts[c] - expected) <= 4 * std::sqrt(expected * (1 - expected) / kCount));
    }
  }
}

TEST_CASE("purposes follow names, so that another layer leaves them alone", "[ops][random]") {
  const auto purpose_in_scope = [](bool with_other) {
    Graph graph;
    if (with_other) {
      const Scope other(graph, "other");
      random_uniform(graph, {2});
    }
    const Scope layer(graph, "layer");
    return purpose_of(random_uniform(graph, {2}));
  };
  CHECK(purpose_in_scope(false) == purpose_in_scope(true));
  Graph graph;
  const Value first = random_uniform(graph, {2});
  graph.rename(first, "renamed");
  CHECK(purpose_of(first) != purpose_of(random_uniform(graph, {2})));
}

TEST_CASE("random operators of one name are numbered in their order, however many there are", "[ops][random]") {
  constexpr int kMany = 10000;
  Graph graph;
  graph.add(
      std::make_shared<ops::Random>(ops::Distribution::bernoulli, Shape{2}, 0.5F, 2.0F, Graph::purpose("dropout_2")),
      {graph.random_state()});
  std::vector<std::uint32_t> purposes;
  for (int i = 0; i < kMany; ++i) purposes.push_back(purpose_of(random_mask(graph, {2}, 0.5F, 2.0F, "dropout")));
  CHECK(purposes[0] == Graph::purpose("dropout"));
  CHECK(purposes[1] == Graph::purpose("dropout_1"));
  CHECK(purposes[2] == Graph::purpose("dropout_3"));  // dropout_2 is taken
  std::ranges::sort(purposes);
  CHECK(std::ranges::adjacent_find(purposes) == purposes.end());
  Graph other;
  CHECK(purpose_of(random_mask(other, {2}, 0.5F, 2.0F, "dropout")) == Graph::purpose("dropout"));
}

TEST_CASE("dropout keeps its rate, scales what it keeps, and its gradient has the same mask", "[ops][random]") {
  for (const float p : {0.1F, 0.5F, 0.9F}) {
    std::vector<Tensor> first;
    for (const DevicePtr& device : devices()) {
      INFO("p " << p << " device " << device->info().id);
      const auto results = run_steps(device, 1, 3, [p](Graph& graph) {
        const Value x = full(graph, {kCount}, 2.0F);
        const Value y = dropout(x, p);
        return std::vector{y, gradient(sum(y * 3.0F), std::vector{x}).front()};
      })[0];
      const auto values = results[0].values<float>();
      const auto slopes = results[1].values<float>();
      const float kept = 2.0F * (1.0F / (1.0F - p));
      std::int64_t count = 0;
      bool is_clean = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0) ++count;
        is_clean = is_clean && (values[i] == 0 ? slopes[i] == 0 : values[i] == kept && slopes[i] == kept / 2 * 3);
      }
      CHECK(is_clean);
      CHECK(static_cast<double>(count) / static_cast<double>(kCount) == Approx(1 - p).margin(0.012));
      if (first.empty()) first = results;
      CHECK(difference(results[0], first[0]) == "");
    }
  }
}

TEST_CASE("dropout is the identity when there is nothing to drop", "[ops][random]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}});
  CHECK(dropout(x, 0) == x);
  CHECK_THROWS_AS(dropout(x, -0.1F), ArgumentError);
  CHECK_THROWS_AS(dropout(x, 1.5F), ArgumentError);
  CHECK(dropout(x, 1).shape() == x.shape());
  graph.set_training(false);
  CHECK(dropout(x, 0.5F) == x);
  CHECK_THROWS_AS(random_uniform(graph, {2}, 1, 0), ArgumentError);
}

}  // namespace
}  // namespace concord::test
