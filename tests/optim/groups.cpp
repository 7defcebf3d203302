// Groups of parameters: who takes which, and what is refused.
#include "concord/optim/groups.hpp"

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using optim::named;

namespace {

Variable variable_named(const char* name, Shape shape = {}) {
  return {name, {DType::f32, std::move(shape)}, {}, true, {}};
}

/// An optimizer of one's own, without weight decay.
struct Plain {
  [[nodiscard]] optim::Rule rule() const {
    optim::Rule rule{"plain", 0.1};
    rule.update = [](const optim::UpdateTerms& terms) -> std::vector<Scalar> {
      return {terms.weight - terms.lr * terms.gradient};
    };
    return rule;
  }
};

/// A loss of a small network with batch norm.
struct Traced {
  Traced() {
    const Value x = graph.input("x", {DType::f32, Shape{4, 3, 5, 5}});
    loss = mean(square(nn::Sequential{nn::Conv2d{3, 2, 3}, nn::BatchNorm2d{2}, nn::Flatten{}, nn::Linear{18, 2}}(x)));
  }
  void minimize(const optim::Optimizer& optimizer, std::vector<optim::Group> groups) {
    optim::minimize(loss, optimizer, {.groups = std::move(groups)});
  }
  Graph graph;
  Value loss;
};

}  // namespace

TEST_CASE("names are matched by patterns", "[optim]") {
  CHECK(named("a.weight")(variable_named("a.weight")));
  CHECK_FALSE(named("a.weight")(variable_named("a.weights")));
  CHECK(named("*")(variable_named("")));
  CHECK(named("*.bias")(variable_named("layer.0.bias")));
  CHECK_FALSE(named("*.bias")(variable_named("layer.0.biased")));
  CHECK(named("a*b*c")(variable_named("aXbYbZc")));
  CHECK_FALSE(named("a*b*c")(variable_named("aXcYb")));
  CHECK(named("layer.?.weight*")(variable_named("layer.7.weight")));
  CHECK_FALSE(named("layer.?.weight")(variable_named("layer.10.weight")));
  CHECK(optim::vectors()(variable_named("scale", Shape{4})));
  CHECK_FALSE(optim::vectors()(variable_named("matrix", Shape{4, 1})));
}

TEST_CASE("each parameter goes to the first group that matches", "[optim]") {
  Traced traced;
  const optim::Partition divided = optim::partition(traced.graph, optim::AdamW{.lr = 0.1},
                                                    {{.match = named("0.*"), .frozen = true},
                                                     {.match = optim::vectors(), .rate_factor = 2, .weight_decay = 0},
                                                     {.match = named("3.weight"), .optimizer = optim::Sgd{.lr = 0.4}}});
  REQUIRE(divided.parts.size() == 2);  // nothing is left for the common optimizer
  std::vector<std::string> names;
  for (const Value& weight : divided.parts[0].weights) names.push_back(weight.name());
  CHECK(names == std::vector<std::string>{"1.weight", "1.bias", "3.bias"});
  CHECK(divided.parts[0].rate_factor == 2);
  CHECK(divided.parts[0].rule.name == "adamw");
  CHECK(divided.parts[1].rule.name == "sgd");
  CHECK(divided.parts[1].rate_factor == Approx(4));
}

TEST_CASE("frozen parameters have neither gradient nor state", "[optim]") {
  Traced traced;
  traced.minimize(optim::Adam{}, {{.match = named("0.*"), .frozen = true}});
  for (const VariablePtr& variable : traced.graph.variables()) CHECK(!variable->name.starts_with("optim.0."));
  for (std::int32_t id = 0; id < traced.graph.size(); ++id) {
    const Node& node = traced.graph.node(id);
    CHECK(node.name.find("backward_weights") == std::string::npos);
  }
}

TEST_CASE("groups that cannot be are refused", "[optim]") {
  CHECK_THROWS_WITH(Traced().minimize(optim::Sgd{}, {{.match = named("nothing")}}), contains("of parameters is empty"));
  CHECK_THROWS_WITH(Traced().minimize(optim::Sgd{}, {{.match = named("*"), .frozen = true}}), contains("no trainable"));
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{}, {{}}), ArgumentError);
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{}, {{.match = named("*"), .rate_factor = -1}}), ArgumentError);
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{.lr = 0}, {{.match = named("*"), .optimizer = optim::Adam{}}}),
                  ArgumentError);
  CHECK_THROWS_WITH(Traced().minimize(Plain{}, {{.match = optim::vectors(), .weight_decay = 0}}), contains("'plain'"));
  CHECK_THROWS_WITH(Traced().minimize(optim::Muon{}, {}), contains("0.bias") && contains("[2]"));
}

TEST_CASE("Muon's matrices are those inside the network", "[optim]") {
  Graph graph;
  const Value x = graph.input("x", {DType::i32, Shape{2, 8}});
  static_cast<void>((*models::make("gpt_tiny", {.input = Shape{8}}))(x));
  const optim::Match others = optim::all_but_hidden_matrices(graph);
  std::size_t hidden = 0;
  for (const VariablePtr& variable : graph.variables()) {
    INFO(variable->name);
    const bool is_hidden = !others(*variable);
    hidden += is_hidden ? 1 : 0;
    if (variable->spec.shape.rank() < 2) CHECK_FALSE(is_hidden);
    for (const char* outside : {"*wte*", "*wpe*", "*embed*", "*head*"}) {
      if (named(outside)(*variable)) CHECK_FALSE(is_hidden);
    }
  }
  CHECK(hidden > 0);

  Traced images;  // "0" convolution, "3" the last layer
  const optim::Match rest = optim::all_but_hidden_matrices(images.graph);
  CHECK_FALSE(rest(variable_named("0.weight")));
  CHECK(rest(variable_named("0.bias")));
  CHECK(rest(variable_named("1.weight")));
  CHECK(rest(variable_named("3.weight")));
}
