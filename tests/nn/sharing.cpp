// Who shares weights with whom in one Variables: copies and parts of a module do, networks of equal names do not.
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Program program_of(nn::Module& net, const VariablesPtr& variables) {
  Graph graph;
  const Value y = net(graph.input("x", {DType::f32, Shape{2, 4}}));
  return compile(graph, {{y}}, variables);
}

bool same_bits(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

/// Two layers of one shape, body and head, that can be called alone.
struct TwoParts : nn::Module {
  nn::Linear body{4, 4}, head{4, 4};
  Children children() override { return {{"body", &body}, {"head", &head}}; }
  Value forward(Value x) override { return head(relu(body(x))); }
};

Tensor output_of(Program& program, const Tensor& x) {
  program.write("x", x);
  program.run();
  return program.read("y");
}

/// With the output named "y".
Program named_program_of(nn::Module& net, const VariablesPtr& variables) {
  Graph graph;
  const Value y = net(graph.input("x", {DType::f32, Shape{2, 4}}));
  graph.rename(y, "y");
  return compile(graph, {{y}}, variables);
}

std::vector<std::string> names_in(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) names.push_back(variable->name);
  return names;
}

const std::vector<std::string>& names_of_whole() {
  static const std::vector<std::string> names{"body.bias", "body.weight", "head.bias", "head.weight"};
  return names;
}

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
    Program part = named_program_of(head, variables);
    variables->write("head.weight", Tensor::of<float>(Shape{4, 4}, std::vector<float>(16, 0.5F)));
    variables->write("head.bias", Tensor(DType::f32, Shape{4}));
    const Tensor y = output_of(part, Tensor::of<float>(Shape{2, 4}, std::vector<float>(8, 1.0F)));
    CHECK(same_bits(y, Tensor::of<float>(Shape{2, 4}, std::vector<float>(8, 2.0F))));
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

TEST_CASE("two parts of a network in programs of their own compute what the network does", "[nn]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    TwoParts net;
    Program whole = named_program_of(net, variables), body = named_program_of(net.body, variables),
            head = named_program_of(net.head, variables);
    const Tensor x = Tensor::of<float>(Shape{2, 4}, std::vector<float>{1, 2, 3, 4, -1, 0, 1, 2});
    Tensor hidden = output_of(body, x);
    for (float& value : hidden.values<float>()) value = std::max(value, 0.0F);
    const Tensor parts = output_of(head, hidden), expected = output_of(whole, x);
    for (std::size_t i = 0; i < 8; ++i) CHECK(parts.values<float>()[i] == Approx(expected.values<float>()[i]));
    CHECK(variables->names() == names_of_whole());
    CHECK(variables->persistent_names() == names_of_whole());
    CHECK_FALSE(variables->contains("weight"));
    TwoParts other;
    CHECK_THROWS_WITH(named_program_of(other, variables), contains("two networks"));
  }
}

TEST_CASE("a network that comes after a part of it gives the weights their names", "[nn]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    TwoParts net;
    const Program body = program_of(net.body, variables);
    const Tensor drawn = variables->read("weight");
    const Program whole = program_of(net, variables), head = program_of(net.head, variables);
    CHECK(variables->names() == names_of_whole());
    CHECK(variables->persistent_names() == names_of_whole());
    CHECK(variables->read_all().size() == 4);
    CHECK(same_bits(variables->read("body.weight"), drawn));
    variables->write("body.weight", Tensor(DType::f32, Shape{4, 4}));  // who knows the old name reads the same
    CHECK(same_bits(variables->read("weight"), variables->read("body.weight")));
    nn::Linear other{4, 4};
    CHECK_THROWS_WITH(program_of(other, variables), contains("two networks"));
  }
}

TEST_CASE("a layer of two networks has its weights in both", "[nn]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    nn::Linear layer{4, 4};
    nn::Sequential first = nn::Sequential().push("first", layer), second = nn::Sequential().push("second", layer),
                   third = nn::Sequential().push("third", layer);
    static_cast<void>(program_of(first, variables));
    static_cast<void>(program_of(second, variables));
    CHECK(variables->persistent_names() == std::vector<std::string>{"first.bias", "first.weight"});
    {
      nn::Sequential gone = nn::Sequential().push("third", nn::Linear{4, 4});
      static_cast<void>(program_of(gone, variables));
      CHECK_THROWS_WITH(program_of(third, variables), contains("two networks"));
    }
    static_cast<void>(program_of(third, variables));
    CHECK(variables->persistent_names() == std::vector<std::string>{"first.bias", "first.weight"});
    for (const char* name : {"second.weight", "third.weight"}) {
      CHECK(same_bits(variables->read(name), variables->read("first.weight")));
    }
  }
}

TEST_CASE("a graph keeps the names that its parameters were traced with", "[nn]") {
  TwoParts net;
  const TensorSpec input{DType::f32, Shape{2, 4}};
  Graph whole, part;
  const Value y = net(whole.input("x", input));
  const std::vector<std::string> before = names_in(whole);
  CHECK(before == std::vector<std::string>{"body.weight", "body.bias", "head.weight", "head.bias"});
  static_cast<void>(net.head(part.input("x", input)));
  CHECK(names_in(part) == std::vector<std::string>{"weight", "bias"});
  CHECK(names_in(whole) == before);
  CHECK(whole.variable(net.head.weight()).name() == "head.weight");
  CHECK(part.variable(net.head.weight()).name() == "weight");
  optim::minimize(sum(y * y), optim::Sgd{.lr = 0.1, .momentum = 0.9});
  for (const VariablePtr& variable : whole.variables()) {
    CHECK((variable->of.empty() || std::ranges::find(before, variable->of) != before.end()));
  }
}

TEST_CASE("a part that is called in a trainer's variables leaves its checkpoints as they are", "[nn][train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Dataset data = data::synthetic(Shape{4}, 4, 24);
    const auto trainer_of = [&](TwoParts& net) {
      return Trainer{net, loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.seed = 3}};
    };
    for (const bool first : {true, false}) {
      INFO(first);
      const TemporaryFolder folder;
      const std::filesystem::path file = folder.path() / "state.safetensors",
                                  alone = folder.path() / "alone.safetensors";
      TwoParts plain, net, resumed;
      Trainer expected = trainer_of(plain), trainer = trainer_of(net), later = trainer_of(resumed);
      const auto call_parts = [&] {
        const Program body = program_of(net.body, trainer.variables());
        if (!first) static_cast<void>(program_of(net.head, trainer.variables()));
      };
      if (first) call_parts();
      trainer.fit(data, {.epochs = 1, .batch = 8});
      if (!first) call_parts();
      trainer.save_checkpoint(file);
      expected.fit(data, {.epochs = 1, .batch = 8});
      expected.save_checkpoint(alone);
      const auto saved = io::load_checkpoint(file).tensors, wanted = io::load_checkpoint(alone).tensors;
      CHECK(std::ranges::equal(
          saved, wanted, {}, [](const auto& one) { return one.first; }, [](const auto& one) { return one.first; }));
      later.resume(file);
      CHECK_NOTHROW(later.fit(data, {.epochs = 2, .batch = 8}));
      trainer.fit(data, {.epochs = 2, .batch = 8});
      CHECK(same_bits(later.variables()->read("head.weight"), trainer.variables()->read("head.weight")));
    }
  }
}

TEST_CASE("a part is trained in the variables of its network", "[nn][train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    TwoParts net;
    Trainer trainer{net.body, loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = 3}};
    const Program whole = program_of(net, trainer.variables());
    const Tensor before = trainer.variables()->read("body.weight");
    trainer.fit(data::synthetic(Shape{4}, 4, 24), {.epochs = 1, .batch = 8});
    CHECK_FALSE(same_bits(trainer.variables()->read("body.weight"), before));
    CHECK(same_bits(trainer.variables()->read("weight"), trainer.variables()->read("body.weight")));
  }
}

TEST_CASE("two parts that are trained alone never share their moments", "[nn]") {
  const auto step_of = [](nn::Module& part, const VariablesPtr& variables) {
    Graph graph;
    const Value y = part(graph.input("x", {DType::f32, Shape{2, 4}}));
    const Value loss = mean(y * y);
    optim::minimize(loss, optim::Adam{.lr = 0.01});
    return compile(graph, {{loss}}, variables);
  };
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    TwoParts net;
    static_cast<void>(program_of(net, variables));
    for (int again = 0; again < 2; ++again) CHECK_NOTHROW(step_of(net.body, variables));
    CHECK_THROWS_WITH(step_of(net.head, variables), contains("the state of another parameter"));
    nn::Sequential named = nn::Sequential().push("head", net.head);
    CHECK_NOTHROW(step_of(named, variables));
    CHECK_NOTHROW(step_of(net, variables));
  }
}
