// lower(): which nodes and values of a graph a program has, what may be read after a run, and what an assignment takes.
#include <algorithm>

#include "compile/fake_device.hpp"
#include "concord/compile/program.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

using Names = std::vector<std::string>;
using Kind = LoweredValue::Kind;

Names value_names(const Lowered& program) {
  Names names;
  for (const LoweredValue& value : program.values) names.push_back(value.name);
  return names;
}

Names kept(const Lowered& program) {
  Names names;
  for (const LoweredValue& value : program.values) {
    if (value.keep) names.push_back(value.name);
  }
  return names;
}

/// What the assignments do, as "variable = value".
Names assignments(const Lowered& program) {
  Names texts;
  for (const LoweredAssignment& a : program.assignments) {
    texts.push_back(program.value(a.variable).name + " = " + program.value(a.value).name);
  }
  return texts;
}

}  // namespace

TEST_CASE("a program has only what its outputs and assignments need, in the order of the graph", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value unused_input = graph.input("unused", kMatrix);
  const Value w = variable(graph, "w");
  const Value unused_variable = variable(graph, "u");
  const Value product = named(matmul(x, w), "product");
  (void)exp(unused_input * unused_variable);
  const Value y = named(relu(product), "y");
  const Value step = named(w - 1.0F, "step");
  (void)sigmoid(product);  // reads what is needed, and is not needed itself
  const std::vector outputs{y};

  const Lowered without = lower(graph, outputs, false);
  CHECK(value_names(without) == Names{"x", "w", "product", "y"});
  CHECK(operators_of(without) == Names{"matmul", "relu"});
  CHECK(names_of(without, without.nodes[0].inputs) == Names{"x", "w"});
  CHECK(without.nodes[1].name == "y");

  graph.assign(w, step);
  const Lowered with = lower(graph, outputs, false);
  CHECK(value_names(with) == Names{"x", "w", "product", "y", "step"});
  CHECK(operators_of(with) == Names{"matmul", "relu", "subtract"});
  CHECK(operators_of(lower(graph, {}, false)) == Names{"subtract"});
  CHECK(with.value(id_of(with, "x")).kind == Kind::input);
  CHECK(with.value(id_of(with, "w")).kind == Kind::variable);
  CHECK(with.value(id_of(with, "w")).variable->name == "w");
  CHECK(with.value(id_of(with, "step")).kind == Kind::computed);
  CHECK(with.value(id_of(with, "product")).spec == kMatrix);
  CHECK(in_order(with));
}

TEST_CASE("a program of nothing is empty", "[compile]") {
  Graph graph;
  (void)relu(graph.input("x", kMatrix));
  const Lowered program = lower(graph, {}, false);
  CHECK(program.values.empty());
  CHECK(program.nodes.empty());
  CHECK(program.assignments.empty());
}

TEST_CASE("outputs and inputs stay readable, with retains_all every computed value does", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value hidden = named(x * w, "hidden");
  const Value y = named(relu(hidden), "y");
  const Value step = named(w - hidden, "step");
  graph.assign(w, step);
  CHECK(kept(lower(graph, std::vector{y}, false)) == Names{"x", "y"});
  CHECK(kept(lower(graph, std::vector{y}, true)) == Names{"x", "hidden", "y", "step"});
  CHECK(kept(lower(graph, std::vector{hidden, y, hidden}, false)) == Names{"x", "hidden", "y"});
  CHECK(kept(lower(graph, std::vector{w}, false)) == Names{"x", "w"});
  CHECK(lower(graph, std::vector{w}, false).nodes.size() == 2);
}

TEST_CASE("every output of a node is a value of its own", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const std::vector<Value> two =
      pointwise("two", {x}, {scalar::input(0) + 1.0F, scalar::input(0) * 2.0F}, {DType::f32, DType::i32});
  const Lowered program = lower(graph, std::vector{two[1]}, false);
  REQUIRE(program.nodes.size() == 1);
  CHECK(names_of(program, program.nodes[0].outputs) == Names{"two", "two:1"});
  CHECK(kept(program) == Names{"x", "two:1"});
  CHECK(program.specs(program.nodes[0].outputs) == std::vector<TensorSpec>{{DType::f32, {4, 4}}, {DType::i32, {4, 4}}});
}

TEST_CASE("a reshape has no storage of its own", "[compile]") {
  Graph graph;
  const Value x = named(relu(graph.input("x", kMatrix)), "computed");
  const Value flat = named(reshape(x, {16}), "flat");
  const Value tall = named(reshape(flat, {16, 1}), "tall");
  const Lowered program = lower(graph, std::vector{tall}, false);
  const ValueId computed = id_of(program, "computed");
  CHECK(program.value(id_of(program, "flat")).alias_of == computed);
  CHECK(program.value(id_of(program, "tall")).alias_of == id_of(program, "flat"));
  CHECK(program.root(id_of(program, "tall")) == computed);
  CHECK(program.root(computed) == computed);
  CHECK(program.bytes(id_of(program, "tall")) == 64);
}

TEST_CASE("a computed value is assigned as it is, an input or a variable is copied first", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value a = variable(graph, "a");
  const Value b = variable(graph, "b");
  const Value c = variable(graph, "c");
  const Value d = variable(graph, "d");
  graph.assign(a, b);
  graph.assign(b, a);
  graph.assign(c, x);
  graph.assign(d, named(a + 1.0F, "sum"));
  const Lowered program = lower(graph, {}, false);
  CHECK(assignments(program) == Names{"a = copy/a", "b = copy/b", "c = copy/c", "d = sum"});
  CHECK(operators_of(program) == Names{"add", "transpose", "transpose", "transpose"});
  for (const char* name : {"copy/a", "copy/b", "copy/c"}) {
    INFO(name);
    const LoweredValue& copy = program.value(id_of(program, name));
    CHECK(copy.kind == Kind::computed);
    CHECK(copy.variable == nullptr);
    CHECK_FALSE(copy.keep);
    CHECK(copy.spec == kMatrix);
  }
  CHECK(names_of(program, producer_of(program, id_of(program, "copy/a")).inputs) == Names{"b"});
  CHECK(names_of(program, producer_of(program, id_of(program, "copy/c")).inputs) == Names{"x"});
  CHECK(in_order(program));
  const auto values = evaluate(program, {{"x", 1}, {"a", 2}, {"b", 3}, {"c", 4}, {"d", 5}});
  CHECK(values == std::map<std::string, float>{{"sum", 3}, {"copy/a", 3}, {"copy/b", 2}, {"copy/c", 1}});
}

TEST_CASE("a value assigned twice is copied once, under whatever shape", "[compile]") {
  Graph graph;
  const Value a = variable(graph, "a");
  const Value b = variable(graph, "b", {DType::f32, {16}});
  const Value c = variable(graph, "c");
  const Value sum = named(c + 1.0F, "sum");
  graph.assign(a, sum);
  graph.assign(b, reshape(sum, {16}));
  const Lowered program = lower(graph, {}, false);
  CHECK(assignments(program) == Names{"a = sum", "b = copy/b"});
  const LoweredValue& copy = program.value(id_of(program, "copy/b"));
  CHECK(copy.alias_of == -1);
  CHECK(copy.spec == TensorSpec{DType::f32, {16}});
}

TEST_CASE("a variable seen under another shape is copied before it is assigned", "[compile]") {
  Graph graph;
  const Value a = variable(graph, "a");
  const Value b = variable(graph, "b", {DType::f32, {16}});
  graph.assign(b, reshape(a, {16}));
  const Lowered program = lower(graph, {}, false);
  CHECK(assignments(program) == Names{"b = copy/b"});
  CHECK(operators_of(program) == Names{"reshape", "transpose"});
}

TEST_CASE("whole numbers are copied to the last bit", "[compile]") {
  const std::vector<std::int32_t> numbers{16777217, -2147483647, 123456789, 5};  // the first three are no floats
  for (const DevicePtr& device : devices()) {
    INFO(device->info().name);
    Graph graph;
    graph.assign(variable(graph, "a", {DType::i32, {4}}), graph.input("x", {DType::i32, {4}}));
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, {}, variables);
    program.write("x", Tensor::of<std::int32_t>(Shape{4}, numbers));
    program.run();
    const Tensor copy = variables->read("a");
    CHECK(std::ranges::equal(copy.values<std::int32_t>(), numbers));
  }
}

TEST_CASE("an output that is a variable under another shape is what it was before the run", "[compile]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().name);
    Graph graph;
    const Value w = variable(graph, "w", {DType::f32, {2, 2}});
    const Value row = reshape(w, {4}), column = reshape(row, {4, 1}), doubled = row * 2.0F;
    graph.assign(w, w + 1.0F);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, std::vector{column, row, doubled}, variables);
    for (float at_first = 0; at_first < 3; ++at_first) {
      if (at_first == 0) variables->write("w", Tensor::of<float>(Shape{2, 2}, std::vector<float>(4, 0)));
      program.run();
      CHECK(program.read(row).values<float>()[3] == at_first);
      CHECK(program.read(column).values<float>()[3] == at_first);
      CHECK(program.read(doubled).values<float>()[3] == 2 * at_first);
      CHECK(variables->read("w").values<float>()[3] == at_first + 1);
    }
  }
}

TEST_CASE("a sum over nothing becomes a constant, which needs nothing that it was made of", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 0}}), w = graph.input("w", {DType::f32, {0, 3}});
  const Value product = named(matmul(x, w), "product"), factor = named(prod(x, {1}, true), "factor");
  const Lowered program = lower(graph, std::vector{product, factor}, false);
  REQUIRE(operators_of(program) == Names{"full", "full"});
  for (const LoweredNode& node : program.nodes) CHECK(node.inputs.empty());
  CHECK(program.value(id_of(program, "product")).spec == TensorSpec{DType::f32, {2, 3}});
  CHECK_FALSE(program.is_empty(program.nodes[0]));
}

TEST_CASE("copies are not kept, even where everything is", "[compile]") {
  Graph graph;
  const Value a = variable(graph, "a");
  const Value x = graph.input("x", kMatrix);
  graph.assign(a, x);
  const Lowered program = lower(graph, std::vector{x, a}, true);
  CHECK(kept(program) == Names{"a", "x"});
  CHECK(assignments(program) == Names{"a = copy/a"});
}

}  // namespace concord::test
