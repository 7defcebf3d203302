// Programs of random operators, outputs and assignments, run several times: fusion, layouts, in-place work and shared
// memory together must give what the same graph gives when every value has a kernel and memory of its own.
#include <algorithm>
#include <cmath>
#include <random>

#include "compile/fake_device.hpp"
#include "concord/compile/program.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::test {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {
    for (const char* name : {"x", "y"}) values_.push_back(graph.input(name, kMatrix));
    for (const char* name : {"u", "v", "w"}) variables_.push_back(variable(graph, name));
    values_.insert(values_.end(), variables_.begin(), variables_.end());
    for (int i = 0; i < 25; ++i) values_.push_back(next());
    outputs = {values_.back(), any(), any()};
    for (const Value& target : variables_) {
      if (below(4) > 0) graph.assign(target, any());
    }
  }

  Graph graph;
  std::vector<Value> outputs;

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  Value any() { return values_[std::max(below(values_.size()), below(values_.size()))]; }
  Value next() {
    const Value a = any(), b = any();
    switch (below(12)) {
      case 0: return tanh(a);
      case 1: return tanh(a - b);
      case 2: return relu(a) * 0.5F;
      case 3: return minimum(a, b);
      case 4: return matmul(a, b) * 0.25F;
      case 5: return relu(tanh(matmul(a, b) + any()));
      case 6: return reshape(exp(-square(reshape(a, {16}))), {4, 4});
      case 7: return transpose(a, {1, 0});
      case 8: return tanh(a + sum(b, {0}, true));
      case 9: return softmax(a) - mean(b);
      case 10: return a * a - a;
      default: {
        const std::vector<Value> two =
            pointwise("two", {a, b}, {scalar::input(0) * 0.5F + scalar::input(1) * 0.5F, -scalar::input(0)},
                      {DType::f32, DType::f32});
        return below(2) == 0 ? two[0] : minimum(two[1], two[0]);
      }
    }
  }

  std::mt19937 random_;
  std::vector<Value> values_, variables_;
};

Tensor numbers(float first) {
  Tensor tensor(kMatrix);
  for (float& x : tensor.values<float>()) x = std::sin(first += 0.7F);
  return tensor;
}

/// Outputs and variables after three runs, by name.
std::map<std::string, Tensor> results(const RandomGraph& random, const DevicePtr& device,
                                      const CompileOptions& options) {
  const auto variables = std::make_shared<Variables>(device, 1);
  Program program = compile(random.graph, random.outputs, variables, options);
  std::map<std::string, Tensor> all;
  for (const std::string& name : variables->names()) variables->write(name, numbers(static_cast<float>(name[0])));
  for (int run = 0; run < 3; ++run) {
    for (const char* name : {"x", "y"}) {
      const std::vector<std::string> readable = program.values();
      if (std::ranges::find(readable, name) != readable.end()) {
        program.write(name, numbers(static_cast<float>(name[0]) + static_cast<float>(run)));
      }
    }
    program.run();
  }
  for (const Value& output : random.outputs) {
    const bool is_variable = output.node().variable != nullptr;  // read below
    if (!is_variable) all.emplace(output.name(), program.read(output));
  }
  for (const std::string& name : variables->names()) all.emplace(name, variables->read(name));
  return all;
}

/// Arena and launches of a program, and the least budget that it can do with.
struct Size {
  std::size_t memory = 0, recomputed = 0, least = 0;
};
Size size_of(const RandomGraph& random, const DevicePtr& device, const CompileOptions& options) {
  const auto variables = std::make_shared<Variables>(device, 1);
  const Program program = compile(random.graph, random.outputs, variables, options);
  Size size{program.memory(), program.recomputed().launches, program.memory()};
  try {
    CompileOptions tight = options;
    tight.memory_budget = 1;
    static_cast<void>(compile(random.graph, random.outputs, variables, tight));
  } catch (const MemoryBudgetError& error) {
    size.least = error.least();
  }
  return size;
}

}  // namespace

TEST_CASE("what a program computes does not depend on how it was compiled", "[compile]") {
  const DevicePtr& device = devices().front();
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    INFO("graph " << seed << " on " << device->info().id);
    const RandomGraph random(seed);
    const auto expected = results(random, device, {.retain = Retain::all});
    for (const CompileOptions& options : {CompileOptions{}, CompileOptions{.fuse = false}}) {
      INFO("fuse: " << options.fuse);
      const auto got = results(random, device, options);
      REQUIRE(got.size() == expected.size());
      for (const auto& [name, tensor] : expected) {
        INFO(name);
        const auto a = got.at(name).values<float>(), b = tensor.values<float>();
        bool equal = true;
        for (std::size_t i = 0; i < b.size(); ++i)
          equal = equal && std::abs(a[i] - b[i]) <= 1e-3F * (1 + std::abs(b[i]));
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("a memory budget is kept, and changes no bit", "[compile][recompute]") {
  const DevicePtr& device = devices().front();
  std::size_t smaller = 0, recomputed = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    INFO("graph " << seed << " on " << device->info().id);
    const RandomGraph random(seed);
    const CompileOptions kept{.fuse = seed % 2 == 0};
    const Size size = size_of(random, device, kept);
    CHECK(size.recomputed == 0);
    if (size.least == size.memory) continue;
    ++smaller;
    const auto expected = results(random, device, kept);
    for (const std::size_t budget : {size.least, (size.least + size.memory) / 2}) {
      const CompileOptions options{.fuse = kept.fuse, .memory_budget = budget};
      const Size within = size_of(random, device, options);
      CHECK(within.memory <= budget);
      recomputed += within.recomputed;
      const auto got = results(random, device, options);
      REQUIRE(got.size() == expected.size());
      for (const auto& [name, tensor] : expected) {
        INFO(name);
        CHECK(std::ranges::equal(got.at(name).bytes(), tensor.bytes()));
      }
    }
  }
  CHECK(smaller >= 20);
  CHECK(recomputed >= 20);
}

TEST_CASE("a budget and kept values exclude each other", "[compile][recompute]") {
  const RandomGraph random(1);
  const auto variables = std::make_shared<Variables>(devices().front(), 1);
  for (const CompileOptions& options : {CompileOptions{.retain = Retain::all, .memory_budget = 1 << 20},
                                        CompileOptions{.retain = Retain::fused, .memory_budget = 1 << 20}}) {
    CHECK_THROWS_AS(compile(random.graph, random.outputs, variables, options), ArgumentError);
  }
}

}  // namespace concord::test
