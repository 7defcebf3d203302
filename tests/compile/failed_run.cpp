// A run that fails may have changed variables: other programs of these compute from what the variables hold now.
#include <stdexcept>

#include "concord/compile/program.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/matmul.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

Tensor ramp(const Shape& shape, float step, float start) {
  Tensor tensor(DType::f32, shape);
  float value = start;
  for (float& x : tensor.values<float>()) x = value += step;
  return tensor;
}

VariablePtr variable(std::string name, const Shape& shape) {
  const Tensor first = ramp(shape, 0.01F, 1);
  return std::make_shared<Variable>(Variable{std::move(name), first.spec(), {}, true, first});
}

/// Weights that the CPU packs for their kernel, and those of a convolution that it multiplies by factors.
struct Weights {
  VariablePtr packed = variable("packed", {33, 20}), filters = variable("filters", {4, 3, 3, 3}),
              factors = variable("factors", {4, 1, 1});

  [[nodiscard]] std::vector<VariablePtr> all() const { return {packed, filters, factors}; }

  /// What a network computes from them.
  [[nodiscard]] Program network(const VariablesPtr& variables, std::vector<std::string>& outputs) const {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {1100, 33}}),
                image = graph.input("image", {DType::f32, {2, 3, 8, 8}});
    const std::vector<Value> results{matmul(x, graph.variable(packed)),
                                     conv2d(image, graph.variable(filters)) * graph.variable(factors)};
    for (const Value& result : results) outputs.push_back(result.name());
    Program program = compile(graph, results, variables);
    program.write("x", ramp(x.shape(), 1e-5F, -1));
    program.write("image", ramp(image.shape(), 1e-3F, -1));
    return program;
  }

  /// Doubles all of them, then sums over the ranks.
  [[nodiscard]] Program training(const VariablesPtr& variables) const {
    Graph graph;
    for (const VariablePtr& one : all()) graph.assign(graph.variable(one), graph.variable(one) * 2.0F);
    const Value summed = all_reduce(graph.input("gradient", {DType::f32, {8}}));
    return compile(graph, std::vector{summed}, variables);
  }
};

std::vector<std::byte> results(Program& program, const std::vector<std::string>& outputs) {
  program.run();
  std::vector<std::byte> all;
  for (const std::string& output : outputs) {
    const Tensor tensor = program.read(output);
    all.insert(all.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

}  // namespace

TEST_CASE("after a failed run other programs compute from the variables as they are", "[compile]") {
  const Weights weights;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    std::vector<std::string> outputs, again;
    Program network = weights.network(variables, outputs), training = weights.training(variables);
    bool fails = true;
    training.all_reduce_by([&](const Operand&, std::size_t) {
      if (fails) throw std::runtime_error("a rank is gone");
    });
    std::vector<std::byte> before = results(network, outputs);
    const std::function<void()> runs[]{[&] { training.run(); }, [&] { static_cast<void>(training.run_traced()); }};
    for (const auto& run : runs) {
      fails = true;
      CHECK_THROWS_WITH(run(), "a rank is gone");
      Program another = weights.network(variables, again);
      const std::vector<std::byte> now = results(network, outputs);
      CHECK((now != before));  // the variables were written before the exchange
      CHECK((now == results(another, outputs)));
      fails = false;
      run();
      before = results(network, outputs);
      CHECK((before != now));
      CHECK((before == results(another, outputs)));
    }
  }
}

}  // namespace concord::test
