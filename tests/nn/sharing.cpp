// Who shares weights with whom in one Variables: copies and parts of a module do, networks of equal names do not.
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Program program_of(nn::Module& net, const VariablesPtr& variables) {
  Graph graph;
  const Value y = net(graph.input("x", {DType::f32, Shape{2, 4}}));
  return compile(graph, {{y}}, variables);
}

bool same_bits(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

}  // namespace

TEST_CASE("two networks of one shape in one Variables are an error, not one network", "[nn]") {
  for (const DevicePtr& device : devices()) {
    const auto variables = std::make_shared<Variables>(device, 1);
    nn::Sequential a{nn::Linear{4, 4}}, b{nn::Linear{4, 4}};
    const Program first = program_of(a, variables);
    CHECK_THROWS_AS(program_of(b, variables), ArgumentError);
    CHECK_THROWS_WITH(program_of(b, variables), contains("'0.weight'") && contains("two networks"));
    CHECK_NOTHROW(program_of(a, variables));
    nn::Sequential copy = a;
    CHECK_NOTHROW(program_of(copy, variables));
    nn::Sequential named = nn::Sequential().push("b", b);
    CHECK_NOTHROW(program_of(named, variables));
    CHECK(variables->names() == std::vector<std::string>{"0.bias", "0.weight", "b.0.bias", "b.0.weight"});
    CHECK_FALSE(same_bits(variables->read("0.weight"), variables->read("b.0.weight")));
  }
}

TEST_CASE("networks share weights by name where they are asked to", "[nn]") {
  const auto variables = std::make_shared<Variables>(devices().front(), 1, Sharing::by_name);
  nn::Linear a{4, 4}, b{4, 4};
  const Program first = program_of(a, variables);
  CHECK_NOTHROW(program_of(b, variables));
  CHECK(variables->names().size() == 2);
}

TEST_CASE("a network takes the place of one that is gone", "[nn]") {
  const auto variables = std::make_shared<Variables>(devices().front(), 1);
  for (int i = 0; i < 2; ++i) {
    nn::Linear net{4, 4};
    CHECK_NOTHROW(program_of(net, variables));
  }
}

TEST_CASE("a part that is called without its network has the weights that it has in it", "[nn]") {
  for (const DevicePtr& device : devices()) {
    const auto variables = std::make_shared<Variables>(device, 1);
    nn::Linear head{4, 4};
    nn::Sequential net = nn::Sequential().push("body", nn::Linear{4, 4}).push("head", head);
    const Program whole = program_of(net, variables);
    Program part = program_of(head, variables);
    const Tensor changed = Tensor::of<float>(Shape{4, 4}, std::vector<float>(16, 0.5F));
    variables->write("head.weight", changed);
    CHECK(same_bits(variables->read("weight"), changed));
    part.write("x", Tensor::of<float>(Shape{2, 4}, std::vector<float>(8, 1.0F)));
    CHECK_NOTHROW(part.run());
  }
}

TEST_CASE("a name that two purposes want is an error", "[nn]") {
  const auto variables = std::make_shared<Variables>(devices().front(), 1);
  const TensorSpec spec{DType::f32, Shape{3}};
  static_cast<void>(variables->require(Variable{"x", spec, {}, true, {}, VariableRole::parameter}));
  CHECK_THROWS_AS(variables->require(Variable{"x", spec, {}, false, {}, VariableRole::average, "y"}), ArgumentError);
  CHECK_THROWS_AS(variables->bind("x", spec, devices().front()->allocate(spec.bytes())), ArgumentError);
  static_cast<void>(variables->require(Variable{"t", spec, {}, false, {}, VariableRole::transient}));
  CHECK(variables->persistent_names() == std::vector<std::string>{"x"});
}
