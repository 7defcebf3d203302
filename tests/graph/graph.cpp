// Names, variables, assignments and gradients of graphs.
#include "concord/graph/graph.hpp"

#include "concord/ops/gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/top_k.hpp"
#include "concord_test.hpp"

namespace concord {
namespace {

VariablePtr weight(std::string name, Shape shape) {
  return std::make_shared<Variable>(Variable{std::move(name), {DType::f32, std::move(shape)}, {}, true, {}});
}

TEST_CASE("names are unique and lead back to their value", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  const Value a = relu(x), b = relu(a);
  CHECK(a.name() != b.name());
  CHECK(graph.find(b.name()) == b);
  CHECK(graph.find("x") == x);
  CHECK_FALSE(graph.find("nothing"));
  CHECK_THROWS_AS(graph.input("x", {DType::f32, {1}}), ArgumentError);
}

TEST_CASE("scopes prefix names", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  {
    const Scope block(graph, "block"), act(graph, "act");
    CHECK(relu(x).name() == "block/act/relu");
  }
  CHECK(relu(x).name() == "relu");
}

TEST_CASE("a variable has one node, and its name belongs to it alone", "[graph]") {
  Graph graph;
  const VariablePtr w = weight("w", {3});
  CHECK(graph.variable(w) == graph.variable(w));
  CHECK_THROWS_AS(graph.variable(weight("w", {3})), ShapeError);
}

TEST_CASE("the name of a further output belongs to it alone", "[graph]") {
  Graph graph;
  const TensorSpec row{DType::f32, {1, 4}};
  const Value x = graph.input("x", row), given = graph.input("top_k_1:1", row);
  const TopKResult first = top_k(x, 2, 1), second = top_k(x, 2, 1);
  CHECK(first.indices.name() == "top_k:1");
  CHECK(second.indices.name() == "top_k_1_1:1");  // not top_k_1:1
  CHECK_THROWS_AS(graph.input("top_k:1", row), ArgumentError);
  CHECK(graph.input("top_k:0", row).name() == "top_k:0");  // the first output is top_k
  const Value labelled = pointwise("top_k:1", {x}, scalar::input(0) + 1.0F);
  CHECK(labelled.name() == "top_k:1_1");
  graph.rename(labelled, "top_k_1_1:1");
  CHECK(labelled.name() == "top_k_1_1:1_1");
  graph.rename(second.values, "y");
  CHECK(second.indices.name() == "y:1");
  const Value w = graph.variable(weight("y:1", {3}));
  CHECK(w.name() == "y:1");
  CHECK(second.indices.name() == "y_1:1");
  for (const Value& value : {given, first.values, first.indices, second.values, second.indices, labelled, w}) {
    CHECK(graph.find(value.name()) == value);
  }
}

TEST_CASE("an assignment needs a variable and its spec", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3}});
  const Value w = graph.variable(weight("w", {3}));
  CHECK_THROWS_AS(graph.assign(x, w), ArgumentError);
  CHECK_THROWS_AS(graph.assign(w, graph.input("y", {DType::f32, {4}})), ShapeError);
  graph.assign(w, w + x);
  graph.assign(w, w - x);
  CHECK(graph.assignments().size() == 1);
}

TEST_CASE("a shape mistake names its node and both operands", "[graph]") {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {2, 3}});
  const Value b = graph.input("b", {DType::f32, {4, 5}});
  const Scope scope(graph, "fc1");
  try {
    (void)matmul(a, b);
    FAIL("no error");
  } catch (const ShapeError& error) {
    const std::string text = error.what();
    CHECK(text.find("fc1/matmul") != std::string::npos);
    CHECK(text.find("[2, 3]") != std::string::npos);
    CHECK(text.find("[4, 5]") != std::string::npos);
  }
}

TEST_CASE("values of two graphs do not mix", "[graph]") {
  Graph one, two;
  const Value a = one.input("a", {DType::f32, {2}});
  const Value b = two.input("b", {DType::f32, {2}});
  CHECK_THROWS_AS(a + b, ArgumentError);
}

TEST_CASE("the gradient has the shape of what it is taken by, and zeros where nothing depends", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}});
  const Value w = graph.variable(weight("w", {3, 2}));
  const Value b = graph.variable(weight("b", {2}));
  const Value unused = graph.variable(weight("unused", {7}));
  const Value loss = mean(square(matmul(x, w) + b));
  const std::vector<Value> wrt{w, b, unused, x};
  const std::vector<Value> diffs = gradient(loss, wrt);
  REQUIRE(diffs.size() == 4);
  for (std::size_t i = 0; i < wrt.size(); ++i) CHECK(diffs[i].shape() == wrt[i].shape());
  CHECK(diffs[2].node().inputs.empty());
  CHECK(diffs[0].name().rfind("grad/", 0) == 0);
}

TEST_CASE("the gradient is taken of one number", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}});
  CHECK_THROWS_AS(gradient(relu(x), std::vector<Value>{x}), ShapeError);
}

}  // namespace
}  // namespace concord
