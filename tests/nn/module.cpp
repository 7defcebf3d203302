// Modules: names of parameters and nodes, sharing, mistakes that name the layer.
#include "concord/nn/module.hpp"

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::vector<std::string> parameter_names(nn::Module& net, const Shape& input, bool training = true) {
  Graph graph;
  graph.set_training(training);
  static_cast<void>(net(graph.input("x", {DType::f32, input})));
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) names.push_back(variable->name);
  return names;
}

/// Names its children.
struct Named : nn::Module {
  nn::Linear up{4, 8}, down{8, 4};
  Value forward(Value x) override { return x + down(relu(up(x))); }
  Children children() override { return {{"up", &up}, {"down", &down}}; }
};

/// Does not; calls the second first.
struct Unnamed : nn::Module {
  nn::Linear first{4, 4}, second{4, 4};
  Value forward(Value x) override { return first(second(x)); }
};

/// Is called with two values; its child is named under it all the same.
struct Gated : nn::Module {
  nn::Linear gate{4, 4};
  Value forward(Value x) override { return x * sigmoid(gate(x)); }
  Value operator()(Value x, Value by) {
    const Tracing tracing(x.graph(), *this);
    return x * sigmoid(gate(by));
  }
  Children children() override { return {{"gate", &gate}}; }
};
struct CallsGated : nn::Module {
  Gated gated;
  Value forward(Value x) override { return gated(x, relu(x)); }
  Children children() override { return {{"gated", &gated}}; }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("parameters are named as in PyTorch", "[nn]") {
  nn::Sequential net{nn::Linear{4, 4}, nn::ReLU{}, Named{}, nn::Sequential{nn::Linear{4, 2, {.bias = false}}}};
  const Names names{"0.weight", "0.bias", "2.up.weight", "2.up.bias", "2.down.weight", "2.down.bias", "3.0.weight"};
  CHECK(parameter_names(net, Shape{3, 4}) == names);
  SECTION("again, in evaluation, and for a copy") {
    CHECK(parameter_names(net, Shape{1, 4}, false) == names);
    nn::Sequential copy = net;
    CHECK(parameter_names(copy, Shape{3, 4}) == names);
  }
}

TEST_CASE("children without a name are numbered by their first call", "[nn]") {
  Unnamed net;
  const Names names{"0.weight", "0.bias", "1.weight", "1.bias"};
  CHECK(parameter_names(net, Shape{2, 4}) == names);
  CHECK(parameter_names(net, Shape{2, 4}) == names);
  Unnamed other;
  CHECK(parameter_names(other, Shape{2, 4}) == names);
}

TEST_CASE("a layer that forward makes anew has the same name in every graph", "[nn]") {
  struct Anew : nn::Module {
    nn::Linear layer{4, 4};
    Value forward(Value x) override { return layer(nn::ReLU{}(x)); }
  } net;
  for (int trace = 0; trace < 2; ++trace) {
    Graph graph;
    static_cast<void>(net(graph.input("x", {DType::f32, Shape{2, 4}})));
    CHECK(graph.find("0/relu"));
    CHECK(graph.find("1.weight"));
  }
}

TEST_CASE("a graph that is traced within another names its modules by itself", "[nn]") {
  struct Probing : nn::Module {
    nn::Linear layer{4, 4};
    Names of_probe;
    Value forward(Value x) override {
      const Value y = layer(x);
      of_probe = parameter_names(layer, x.shape());
      return layer(y);
    }
    Children children() override { return {{"layer", &layer}}; }
  } net;
  CHECK(parameter_names(net, Shape{2, 4}) == Names{"layer.weight", "layer.bias"});
  CHECK(net.of_probe == Names{"weight", "bias"});
}

TEST_CASE("a layer called with two values names its parameters as one called with one", "[nn]") {
  CallsGated net;
  CHECK(parameter_names(net, Shape{2, 4}) == Names{"gated.gate.weight", "gated.gate.bias"});
}

TEST_CASE("the outermost module has no name, a scope gives it one", "[nn]") {
  nn::Linear layer{4, 2};
  CHECK(parameter_names(layer, Shape{1, 4}) == Names{"weight", "bias"});
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{1, 4}});
  {
    const nn::Scope scope(graph, "head");
    CHECK(layer(x).name().starts_with("head/"));
  }
  CHECK(graph.find("head.weight"));
}

TEST_CASE("a layer called twice shares its weights", "[nn]") {
  struct Twice : nn::Module {
    nn::Linear layer{4, 4};
    Value forward(Value x) override { return layer(layer(x)); }
  } net;
  CHECK(parameter_names(net, Shape{1, 4}) == Names{"0.weight", "0.bias"});
}

TEST_CASE("a copied layer shares its weights", "[nn]") {
  const nn::Linear layer{4, 4};
  nn::Sequential net{layer, layer};
  CHECK(parameter_names(net, Shape{1, 4}) == Names{"0.weight", "0.bias"});
}

TEST_CASE("a shape mistake names the layer", "[nn]") {
  nn::Sequential net{nn::Flatten{}, nn::Sequential{nn::Linear{10, 2}}};
  Graph graph;
  CHECK_THROWS_WITH(net(graph.input("x", {DType::f32, Shape{3, 4}})),
                    contains("1/0/linear") && contains("10") && contains("[3, 4]"));
  nn::Sequential image_net{nn::Conv2d{3, 8, 3}};
  Graph second;
  CHECK_THROWS_AS(image_net(second.input("x", {DType::f32, Shape{2, 1, 8, 8}})), ShapeError);
}

TEST_CASE("layers refuse impossible sizes", "[nn]") {
  CHECK_THROWS_AS(nn::Linear(0, 3), ArgumentError);
  CHECK_THROWS_AS(nn::Conv2d(4, 6, 3, {.groups = 4}), ArgumentError);
  CHECK_THROWS_AS(nn::BatchNorm2d(0), ArgumentError);
}

TEST_CASE("a child needs a name that a file can hold and that no other child has", "[nn]") {
  nn::Sequential net;
  CHECK_THROWS_AS(net.push("", nn::Linear{4, 4}), ArgumentError);
  CHECK_THROWS_AS(net.push("\xff\xfe", nn::Linear{4, 4}), ArgumentError);
  CHECK_THROWS_AS(net.push("\xed\xa0\x80", nn::Linear{4, 4}), ArgumentError);  // half of a surrogate pair
  net.push("same", nn::Linear{4, 4});
  CHECK_THROWS_WITH(net.push("same", nn::Linear{4, 4}), contains("'same'"));
  net.push("1", nn::Linear{4, 4}).push("2", nn::Linear{4, 4});
  CHECK(net.size() == 3);

  struct Badly : nn::Module {
    nn::Linear first{4, 4}, second{4, 4};
    std::string name;
    explicit Badly(std::string other) : name(std::move(other)) {}
    Value forward(Value x) override { return second(first(x)); }
    Children children() override { return {{"first", &first}, {name, &second}}; }
  };
  for (const char* name : {"", "first", "\xc0\x80"}) {
    INFO(name);
    Badly module(name);
    Graph graph;
    CHECK_THROWS_AS(module(graph.input("x", {DType::f32, Shape{2, 4}})), ArgumentError);
  }
  Graph graph;
  CHECK_THROWS_AS(nn::Scope(graph, ""), ArgumentError);
}

TEST_CASE("two parameters of one name are refused, whichever way the dots came into it", "[nn]") {
  const auto part = [](std::string name) { return nn::Sequential().push(std::move(name), nn::Linear{4, 4}); };
  nn::Sequential net = nn::Sequential().push("a.b", part("c")).push("a", part("b.c"));
  Graph graph;
  CHECK_THROWS_WITH(net(graph.input("x", {DType::f32, Shape{2, 4}})), contains("'a.b.c.weight'"));
}

TEST_CASE("numbers of unnamed children are no child's name", "[nn]") {
  struct Half : nn::Module {
    nn::Linear named{4, 4}, unnamed{4, 4};
    Value forward(Value x) override { return named(unnamed(x)); }
    Children children() override { return {{"0", &named}}; }
  } net;
  CHECK(parameter_names(net, Shape{1, 4}) == Names{"1.weight", "1.bias", "0.weight", "0.bias"});
}

TEST_CASE("a parameter keeps its name beside an operator of that name, and what no file holds is refused", "[nn]") {
  struct Own : nn::Module {
    std::string name;
    VariablePtr own = make_parameter(Shape{4}, nn::init::constant(1));
    Value forward(Value x) override { return relu(x) * parameter(x.graph(), own, name); }
  } net;
  net.name = "relu";
  CHECK(parameter_names(net, Shape{1, 4}) == Names{"relu"});
  for (const char* name : {"", "__metadata__", "\xff"}) {
    net.name = name;
    CHECK_THROWS_AS(parameter_names(net, Shape{1, 4}), ArgumentError);
  }
  net.name = "x";  // as the input
  CHECK_THROWS_WITH(parameter_names(net, Shape{1, 4}), contains("and an input"));
}

TEST_CASE("what a node is for does not come from its name", "[nn]") {
  nn::Sequential net = nn::Sequential().push("grad", nn::Linear{4, 4}).push("update", nn::Linear{4, 1});
  Graph graph;
  const Value y = net(graph.input("x", {DType::f32, Shape{1, 4}}));
  const std::int32_t forward = graph.size();
  static_cast<void>(optim::minimize(reshape(y, Shape{}), optim::Sgd{.lr = 0.1, .momentum = 0.9}));
  std::int64_t gradients = 0, updates = 0;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (id < forward) CHECK(node.pass == Pass::forward);
    gradients += node.op && node.pass == Pass::gradient ? 1 : 0;
    updates += node.op && node.pass == Pass::update ? 1 : 0;
  }
  CHECK(gradients > 0);
  CHECK(updates > 0);
}

TEST_CASE("a summary tells layers apart whatever they are called", "[nn]") {
  nn::Sequential net =
      nn::Sequential().push("a/b", nn::Linear{4, 4}).push("c.", nn::Sequential().push(".d", nn::Linear{4, 2}));
  const models::Summary summary = models::summarize(net, {DType::f32, Shape{1, 4}});
  std::map<std::string, std::int64_t> parameters;
  for (const models::LayerSummary& layer : summary.layers) parameters[layer.path] = layer.parameters;
  CHECK(parameters["a/b"] == 20);
  CHECK(parameters["c...d"] == 10);
}
