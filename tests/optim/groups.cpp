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
  CHECK_THROWS_WITH(Traced().minimize(optim::Sgd{}, {{.match = named("nothing")}}), contains("takes none"));
  CHECK_THROWS_WITH(Traced().minimize(optim::Sgd{}, {{.match = named("*"), .frozen = true}}), contains("no trainable"));
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{}, {{}}), ArgumentError);
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{}, {{.match = named("*"), .rate_factor = -1}}), ArgumentError);
  CHECK_THROWS_AS(Traced().minimize(optim::Sgd{.lr = 0}, {{.match = named("*"), .optimizer = optim::Adam{}}}),
                  ArgumentError);
  CHECK_THROWS_WITH(Traced().minimize(optim::Muon{}, {}), contains("0.bias") && contains("[2]"));
}
