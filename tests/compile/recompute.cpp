// recompute(): what is computed again, that nothing else changes, and how small an arena gets. Without any device.
#include "concord/compile/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "compile/fake_device.hpp"
#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

const TensorSpec kLayer{DType::f32, {64, 64}};
constexpr std::size_t kLayerBytes = std::size_t{64} * 64 * 4;

std::size_t arena_of(const Lowered& program) {
  const Arena arena = place(program, plan_memory(program, false), FakeDevice().info());
  return std::accumulate(arena.slabs.begin(), arena.slabs.end(), std::size_t{0});
}

std::vector<std::string> again(const Lowered& program) {
  std::vector<std::string> names;
  for (const LoweredNode& node : program.nodes) {
    if (node.again) names.push_back(node.name);
  }
  return names;
}

std::size_t least_of(const Lowered& program) {
  Lowered copy = program;
  try {
    recompute(copy, 1, FakeDevice().info());
  } catch (const MemoryBudgetError& error) {
    CHECK(copy.nodes.size() == program.nodes.size());
    return error.least();
  }
  FAIL("a budget of one byte was held");
  return 0;
}

/// A training step of layers y = tanh(y·w), whose results the backward pass reads; only the first weights are trained,
/// since gradients would take as much memory.
Lowered deep_step(int layers) {
  Graph graph;
  Value y = graph.input("x", kLayer);
  std::vector<Value> weights;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(variable(graph, fmt::format("w{}", i), kLayer));
    y = named(tanh(named(matmul(y, weights.back()), fmt::format("product{}", i))), fmt::format("y{}", i));
  }
  const Value loss = named(mean(y), "loss");
  const Value gradient_of_first = gradient(loss, std::vector{weights.front()})[0];
  graph.assign(weights.front(), weights.front() - gradient_of_first * 0.1F);
  Lowered program = lower(graph, std::vector{loss}, false);
  fuse(program, FakeDevice());
  return program;
}

std::map<std::string, float> numbers_for(const Lowered& program) {
  std::map<std::string, float> numbers;
  for (const LoweredValue& value : program.values) {
    if (value.kind != LoweredValue::Kind::computed) {
      numbers[value.name] = 0.1F + 0.01F * static_cast<float>(numbers.size());
    }
  }
  return numbers;
}

/// Kept values, and what variables get.
std::map<std::string, float> results_of(const Lowered& program) {
  const std::map<std::string, float> all = evaluate(program, numbers_for(program));
  std::map<std::string, float> results;
  for (const LoweredValue& value : program.values) {
    if (value.keep && value.kind == LoweredValue::Kind::computed) results[value.name] = all.at(value.name);
  }
  for (const LoweredAssignment& assignment : program.assignments) {
    results[program.value(assignment.variable).name + " becomes"] = all.at(program.value(assignment.value).name);
  }
  return results;
}

}  // namespace

TEST_CASE("a program that fits its budget stays as it is", "[compile][recompute]") {
  Lowered program = deep_step(8);
  const std::vector<std::string> before = operators_of(program);
  recompute(program, arena_of(program), FakeDevice().info());
  CHECK(operators_of(program) == before);
  CHECK(again(program).empty());
}

TEST_CASE("the arena keeps to the budget, and results stay the same", "[compile][recompute]") {
  const Lowered kept = deep_step(24);
  const std::size_t before = arena_of(kept), least = least_of(kept);
  CHECK(least < before / 2);
  std::size_t copies = 0;
  for (const std::size_t budget : {before - 1, before * 3 / 4, before / 2, least}) {
    INFO("budget " << budget << " of " << before);
    Lowered program = kept;
    recompute(program, budget, FakeDevice().info());
    CHECK(arena_of(program) <= budget);
    CHECK(in_order(program));
    CHECK(results_of(program) == results_of(kept));
    CHECK(again(program).size() >= copies);
    copies = again(program).size();
    const std::vector<std::string> names = again(program);
    CHECK(std::set(names.begin(), names.end()).size() == names.size());
  }
}

TEST_CASE("a deep network needs memory that grows less than its depth", "[compile][recompute]") {
  // Segments of k layers of n: n/k results kept, and k computed again at a time.
  const std::size_t least = least_of(deep_step(100));
  CHECK(least <= 32 * kLayerBytes);
  CHECK(arena_of(deep_step(100)) >= 100 * kLayerBytes);
}

TEST_CASE("cheap results go first", "[compile][recompute]") {
  Graph graph;
  const Value x = graph.input("x", kLayer);
  const Value product = named(matmul(x, x), "product");
  const Value wave = named(sigmoid(x), "wave");
  const Value early = named(mean(product) + mean(wave), "early");
  Value middle = x;
  for (int i = 0; i < 4; ++i) middle = matmul(matmul(middle, x), middle);
  const Value y = named(matmul(matmul(middle, product), wave), "y");
  Lowered program = lower(graph, std::vector{y, early}, false);
  recompute(program, arena_of(program) - 1, FakeDevice().info());
  CHECK(again(program) == std::vector<std::string>{"recompute/wave"});
}

TEST_CASE("a result that nothing reads for long is computed later, and once", "[compile][recompute]") {
  Graph graph;
  const Value x = graph.input("x", kLayer);
  const Value wave = named(sigmoid(x), "wave");
  Value middle = x;
  for (int i = 0; i < 4; ++i) middle = matmul(matmul(middle, x), middle);
  const Value y = named(matmul(middle, wave), "y");
  const Lowered kept = lower(graph, std::vector{y}, false);
  Lowered program = kept;
  recompute(program, arena_of(program) - 1, FakeDevice().info());
  CHECK(again(program).empty());
  CHECK(program.nodes.size() == kept.nodes.size());
  CHECK(operators_of(program)[program.nodes.size() - 2] == "sigmoid");
  CHECK(results_of(program) == results_of(kept));
}

TEST_CASE("an update, a result and an input are never computed again", "[compile][recompute]") {
  const Lowered kept = deep_step(16);
  Lowered program = kept;
  recompute(program, least_of(kept), FakeDevice().info());
  std::set<ValueId> fixed;
  for (const LoweredAssignment& assignment : program.assignments) fixed.insert(program.root(assignment.value));
  fixed.insert(id_of(program, "loss"));
  for (const ValueId id : fixed) CHECK_FALSE(producer_of(program, id).again);
  CHECK(program.assignments.size() == kept.assignments.size());
  for (std::size_t i = 0; i < kept.assignments.size(); ++i) {
    CHECK(program.assignments[i].value == kept.assignments[i].value);
  }
}

TEST_CASE("what reads a view of a value computed again reads a view of the second", "[compile][recompute]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value a = named(tanh(x), "a");
  const Value flat = named(reshape(a, {16}), "flat");
  const Value first = named(exp(flat), "first");
  const Value late = named(reshape(a, {2, 8}), "late");
  const Value y = named(sigmoid(flat), "y"), z = named(square(late), "z");
  const Lowered kept = lower(graph, std::vector{first, y, z}, false);
  LastReads last_reads(kept.values.size(), kNeverAgain);
  last_reads[static_cast<std::size_t>(id_of(kept, "a"))] = 2;  // `first`
  const RecomputingProgram made = with_recomputation(kept, last_reads);
  CHECK(in_order(made.program));
  CHECK(again(made.program) == std::vector<std::string>{"recompute/a", "recompute/flat"});
  for (const char* name : {"y", "z"}) {
    const ValueId view = producer_of(made.program, id_of(made.program, name)).inputs[0];
    CHECK(made.program.root(view) == id_of(made.program, "recompute/a"));
  }
  CHECK(results_of(made.program) == results_of(kept));
}

TEST_CASE("any choice of values gives a program of the same results", "[compile][recompute]") {
  const Lowered kept = deep_step(10);
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    LastReads last_reads(kept.values.size(), kNeverAgain);
    for (std::size_t n = 0; n < kept.nodes.size(); ++n) {
      const ValueId id = kept.nodes[n].outputs[0];
      const bool is_assigned =
          std::ranges::any_of(kept.assignments, [&](const auto& a) { return kept.root(a.value) == kept.root(id); });
      if (kept.value(id).keep || is_assigned || kept.root(id) != id || random() % 3 != 0) continue;
      last_reads[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(n + random() % (kept.nodes.size() - n));
    }
    const RecomputingProgram made = with_recomputation(kept, last_reads);
    REQUIRE(in_order(made.program));
    REQUIRE(results_of(made.program) == results_of(kept));
    REQUIRE(std::ranges::is_sorted(made.positions));
  }
}

}  // namespace concord::test
