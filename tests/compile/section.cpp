// Programs of a part of a graph, and runs that overlap.
#include "concord/compile/section.hpp"

#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

VariablePtr counter_named(const std::string& name) {
  return std::make_shared<Variable>(name, TensorSpec{DType::f32, Shape{64, 64}});
}

Tensor filled(float value) { return Tensor::of<float>(Shape{64, 64}, std::vector<float>(64 * 64, value)); }

float first_of(const Tensor& tensor) { return tensor.values<float>()[0]; }

}  // namespace

TEST_CASE("a section computes from what it is given", "[compile]") {
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{64, 64}});
    const Value y = exp(x);
    const Value z = y * 2.0F;
    const auto variables = std::make_shared<Variables>(device, 1);
    const Program whole = compile(graph, {y, z}, variables);
    CHECK(whole.has_input("x"));
    Program part = compile_section(graph, {{z}, {}, {y}}, variables);
    CHECK_FALSE(part.has_input("x"));
    part.write(y.name(), filled(3));
    part.run();
    CHECK(first_of(part.read(z)) == 6);
  }
}

TEST_CASE("runs of twins overlap: each has its own values between the parts", "[compile]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{64, 64}});
    const Value late = graph.input("late", {DType::f32, Shape{64, 64}});
    const Value forward_runs = graph.variable(counter_named("forward")), sum = graph.variable(counter_named("sum"));
    const Value doubled = matmul(x, x);
    const Value out = relu(doubled);
    graph.assign(forward_runs, forward_runs + 1.0F);
    const Value back = matmul(doubled, late);
    graph.assign(sum, sum + back);
    const auto variables = std::make_shared<Variables>(device, 1);
    const std::vector<Assignment> all(graph.assignments().begin(), graph.assignments().end());
    Program first = compile_section(graph, {{out}, all, {}, {out}}, variables);
    CHECK(first.pauses());
    Program second = first.twin();
    CHECK(second.memory() <= first.memory());
    first.write("x", filled(1));
    second.write("x", filled(2));
    first.run_before_pause();
    second.run_before_pause();
    CHECK(first_of(first.read(out)) == 64);
    CHECK(first_of(second.read(out)) == 256);
    CHECK(first_of(variables->read("sum")) == 0);
    first.write("late", filled(1));
    first.run_after_pause();
    CHECK(first_of(variables->read("sum")) == 64 * 64);
    second.write("late", filled(0.5F));
    second.run_after_pause();
    CHECK(first_of(variables->read("sum")) == 64 * 64 + 64 * 128);
    CHECK(first_of(variables->read("forward")) == 2);
  }
}

TEST_CASE("a variable that is changed before the pause and read behind it is refused", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{64, 64}});
  const Value state = graph.variable(counter_named("state")), sum = graph.variable(counter_named("sum"));
  const Value out = exp(x + state);
  graph.assign(state, out);
  graph.assign(sum, matmul(out, state));
  const auto variables = std::make_shared<Variables>(devices()[0], 1);
  const std::vector<Assignment> all(graph.assignments().begin(), graph.assignments().end());
  CHECK_THROWS_WITH(compile_section(graph, {{out}, all, {}, {out}}, variables),
                    contains("the forward pass changes 'state', which the backward pass reads"));
}
