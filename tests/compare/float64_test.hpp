// What the tests of the float64 references share: every operator of a graph and of its gradient, run alone and held
// against its reference.
#pragma once

#include <functional>
#include <set>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/core/philox.hpp"
#include "concord_test.hpp"

namespace concord::test {

/// A graph whose f32 inputs are drawn from [-1, 1) and whose gradients by them are part of what is checked.
class Operators {
 public:
  Value input(Shape shape) {
    Value x = graph_.input("x" + std::to_string(inputs_.size()), {DType::f32, std::move(shape)});
    inputs_.push_back(x);
    return x;
  }
  Value indices(Shape shape, std::vector<std::int32_t> values) {
    Value x = graph_.input("i" + std::to_string(given_.size()), {DType::i32, shape});
    given_.emplace(x.name(), Tensor::of<std::int32_t>(std::move(shape), values));
    return x;
  }
  Graph& graph() { return graph_; }
  /// Runs every operator alone and hands it to `seen`.
  void run(const DevicePtr& device, Value result, const std::function<void(const ReplayedNode&)>& seen,
           const CompileOptions& options = {.retain = Retain::all}) {
    std::vector<Value> outputs{sum(result * input(result.shape()))};
    const std::vector<Value> gradients = gradient(outputs[0], inputs_);
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    Program program = compile(graph_, outputs, std::make_shared<Variables>(device, 7), options);
    PhiloxSequence words(Philox(5, 0));
    for (const Value& input : inputs_) {
      Tensor value(input.spec());
      for (float& x : value.values<float>()) x = static_cast<float>(words.next() >> 8) * 0x1p-23F - 1;
      program.write(input.name(), value);
    }
    for (const auto& [name, value] : given_) program.write(name, value);
    program.replay([](const std::string&) { return nullptr; }, seen);
  }

 private:
  Graph graph_;
  std::vector<Value> inputs_;
  std::map<std::string, Tensor> given_;
};

using BuildOperators = std::function<Value(Operators&)>;

/// Checks all operators that `build` and its gradient are made of; `expected` have to be among those with a reference.
inline void check(const std::string& what, const BuildOperators& build, const std::vector<std::string>& expected) {
  for (const DevicePtr& device : devices()) {
    INFO(what << " on " << device->info().id);
    Operators operators;
    std::set<std::string> referenced;
    operators.run(device, build(operators), [&](const ReplayedNode& node) {
      const float64::Results exact = float64::evaluate(node);
      if (!exact) return;
      referenced.emplace(node.entry.op);
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        if ((*exact)[k].empty()) continue;
        INFO(node.entry.node << " output " << k << ": " << node.entry.op << ", " << node.entry.shapes);
        REQUIRE((*exact)[k].size() == static_cast<std::size_t>(node.results[k].elements()));
        CHECK(largest_difference(node.results[k], (*exact)[k]) <= tolerance_of(node, k));
      }
    });
    for (const std::string& name : expected) {
      INFO(name);
      CHECK(referenced.contains(name));
    }
  }
}

}  // namespace concord::test
