// Ordinary mistakes with handles: each throws an error that says what is wrong, and none ends the process.
#include <functional>
#include <optional>

#include "concord/optim/groups.hpp"
#include "core/thrown.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const TensorSpec kPair{DType::f32, Shape{2, 3}};

struct Forgetful : nn::Module {  // returns no value
  Value forward(Value /*x*/) override { return {}; }
};
struct Elsewhere : nn::Module {  // returns a value of another graph
  Graph other;
  Value kept = other.input("kept", kPair);
  std::shared_ptr<int> unused;
  Value forward(Value /*x*/) override { return kept; }
};
struct Nameless : nn::Module {  // names a child that is not there
  nn::ReLU child;
  Value forward(Value x) override { return child(x); }
  Children children() override { return {{"child", nullptr}}; }
};

Dataset small() { return data::synthetic(Shape{1, 4, 4}, 3, 12, 0); }
nn::Sequential classifier() { return nn::Sequential{nn::Flatten{}, nn::Linear{16, 3}}; }
DevicePtr device() { return devices().front(); }
Trainer trainer() { return Trainer{classifier(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device()}; }

}  // namespace

TEST_CASE("an empty Value is refused by whatever it is handed to", "[core][misuse]") {
  Graph graph;
  const Value x = graph.input("x", kPair), empty;
  nn::Linear linear{3, 2};
  nn::LSTM lstm{3, 2};
  const std::vector<std::function<void()>> uses{
      [&] { static_cast<void>(empty.shape()); },
      [&] { static_cast<void>(empty.spec()); },
      [&] { static_cast<void>(empty.dtype()); },
      [&] { static_cast<void>(empty.name()); },
      [&] { static_cast<void>(empty.node()); },
      [&] { static_cast<void>(empty.graph()); },
      [&] { relu(empty); },
      [&] { empty + empty; },
      [&] { x + empty; },
      [&] { empty* x; },
      [&] { -empty; },
      [&] { empty * 2.0F; },
      [&] { matmul(x, empty); },
      [&] { matmul(empty, x); },
      [&] { softmax(empty); },
      [&] { static_cast<void>(sum(empty)); },
      [&] { static_cast<void>(reshape(empty, Shape{6})); },
      [&] {
        static_cast<void>(concat({x, empty}, 0));
      },
      [&] { static_cast<void>(concat({}, 0)); },
      [&] { static_cast<void>(where(x, empty, x)); },
      [&] { static_cast<void>(gather(x, empty)); },
      [&] { static_cast<void>(attention(empty, empty, empty)); },
      [&] { static_cast<void>(loss::cross_entropy(empty, empty)); },
      [&] { static_cast<void>(loss::mse(x, empty)); },
      [&] { linear(empty); },
      [&] { static_cast<void>(linear.forward(empty)); },
      [&] { lstm(empty); },
      [&] { static_cast<void>(gradient(empty, {x})); },
      [&] { static_cast<void>(gradient(sum(x), {empty})); },
      [&] { graph.assign(empty, x); },
      [&] { graph.assign(x, empty); },
      [&] { graph.rename(empty, "y"); },
      [&] { static_cast<void>(graph.variable(nullptr)); },
      [&] { static_cast<void>(compile(graph, {empty}, std::make_shared<Variables>(device(), 1))); },
      [&] { optim::minimize(empty, optim::Sgd{}); },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::string message = thrown(uses[i]);
    INFO("use " << i << ": " << message);
    CHECK((message.starts_with("ArgumentError") || message.starts_with("ShapeError")));
  }
  CHECK_THAT(thrown([&] { relu(empty); }), contains("a Value is empty"));
}

TEST_CASE("a Value whose graph is gone is refused, also where another graph lies in its place", "[core][misuse]") {
  auto graph = std::make_unique<Graph>();
  const Value x = graph->input("x", kPair);
  graph.reset();
  CHECK_THAT(thrown([&] { static_cast<void>(x.shape()); }), contains("after its Graph is gone"));
  CHECK_THAT(thrown([&] { relu(x); }), contains("after its Graph is gone"));
  std::vector<std::unique_ptr<Graph>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<Graph>());
    const Value y = others.back()->input("y", kPair);
    CHECK_THAT(thrown([&] { x + y; }), contains("after its Graph is gone"));
    CHECK_THAT(thrown([&] { y + x; }), contains("after its Graph is gone"));
  }
}

TEST_CASE("a value of another graph is refused by name", "[core][misuse]") {
  Graph one, two;
  const Value a = one.input("a", kPair), b = two.input("b", kPair), deep = relu(relu(relu(b)));
  const auto variable = std::make_shared<Variable>(Variable{"v", kPair, {}, true, {}});
  const Value v = one.variable(variable);
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { a + b; },
           [&] {
             static_cast<void>(concat({a, deep}, 0));
           },
           [&] { one.assign(v, deep); },
           [&] { two.assign(v, b); },
           [&] { one.rename(deep, "other"); },
           [&] { static_cast<void>(gradient(sum(a), {deep})); },
           [&] {
             static_cast<void>(compile(one, {a, deep}, std::make_shared<Variables>(device(), 1)));
           },
           [&] { static_cast<void>(compile(one, deep, std::make_shared<Variables>(device(), 1))); },
           [&] { static_cast<void>(one.node(deep.node_id() + 100)); },
           [&] { static_cast<void>(Value(&one, 0, 7).shape()); },
       }) {
    CHECK_THAT(thrown(use), contains("ArgumentError"));
  }
  CHECK_THAT(thrown([&] { a + b; }), contains("'b' of another graph"));
}

TEST_CASE("a module that returns no value is named", "[core][misuse]") {
  Graph graph;
  const Value x = graph.input("x", kPair);
  Forgetful forgetful;
  CHECK_THAT(thrown([&] { forgetful(x); }),
             contains("forward of the module") && contains("Forgetful") && contains("returned an empty Value"));
  nn::Sequential network;
  network.push("head", Forgetful{}).push(nn::ReLU{});
  CHECK_THAT(thrown([&] { network(x); }), contains("the module head"));
  Nameless nameless;
  CHECK_THAT(thrown([&] { nameless(x); }), contains("'child', which is a null pointer"));
  const auto elsewhere = std::make_shared<Elsewhere>();
  CHECK_THAT(thrown([&] { (*elsewhere)(x); }), contains("'kept' of another graph"));
  Trainer training{Forgetful{}, loss::cross_entropy, optim::Sgd{.lr = 0.1}, device()};
  CHECK_THAT(thrown([&] { training.fit(small()); }), contains("returned an empty Value"));
  CHECK_THAT(thrown([&] { static_cast<void>(training.evaluate(small())); }), contains("returned an empty Value"));
}

TEST_CASE("what was moved from says so", "[core][misuse]") {
  Trainer before = trainer();
  Trainer after = std::move(before);
  const Dataset data = small();
  const TemporaryFolder folder;
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { before.fit(data); },
           [&] { static_cast<void>(before.evaluate(data)); },
           [&] { static_cast<void>(before.predict(data)); },
           [&] { static_cast<void>(before.predict(data.features)); },
           [&] { before.refresh_statistics(data); },
           [&] { before.save(folder / "a"); },
           [&] { before.load(folder / "a"); },
           [&] { before.save_checkpoint(folder / "a"); },
           [&] { before.resume(folder / "a"); },
           [&] { before.prepare(data.feature_spec()); },
           [&] { static_cast<void>(before.epochs_done()); },
           [&] { static_cast<void>(before.steps_done()); },
           [&] { static_cast<void>(before.variables()); },
           [&] { static_cast<void>(before.device()); },
       }) {
    CHECK_THAT(thrown(use), contains("ArgumentError: a Trainer is used after it was moved from"));
  }
  after.fit(data, {.batch = 4});

  Graph graph;
  const Value y = relu(graph.input("x", kPair));
  Program first = compile(graph, y, std::make_shared<Variables>(device(), 1));
  Program second = std::move(first);
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { first.run(); },
           [&] { static_cast<void>(first.read(y)); },
           [&] { first.write("x", Tensor(kPair)); },
           [&] { static_cast<void>(first.values()); },
           [&] { static_cast<void>(first.memory()); },
           [&] { static_cast<void>(first.cost()); },
           [&] { static_cast<void>(first.device()); },
           [&] { static_cast<void>(first.run_traced()); },
       }) {
    CHECK_THAT(thrown(use), contains("a Program is used after it was moved from"));
  }
  second.run();

  Variables owned(device(), 1);
  const Variables taken = std::move(owned);
  CHECK_THAT(thrown([&] { static_cast<void>(owned.read("w")); }), contains("moved from"));
  CHECK_THAT(thrown([&] { owned.write("w", Tensor(kPair)); }), contains("moved from"));

  Tensor tensor(kPair);
  const Tensor moved = std::move(tensor);
  CHECK(tensor.elements() == 0);
  CHECK(tensor.values<float>().empty());
  CHECK_THAT(thrown([&] { second.write("x", tensor); }), contains("Error"));
  CHECK_THAT(thrown([&] { io::write_safetensors(folder / "t", {{"t", tensor}}); }), contains("moved from"));

  nn::Linear linear{3, 2};
  const nn::Linear moved_layer = std::move(linear);
  CHECK_THAT(thrown([&] { linear(graph.find("x")); }), contains("a layer is used after it was moved from"));
  nn::Conv2d conv{1, 2, 3};
  const nn::Conv2d moved_conv = std::move(conv);
  CHECK_THAT(thrown([&] { conv(graph.input("image", {DType::f32, Shape{1, 1, 8, 8}})); }), contains("Error"));
  nn::LSTM lstm{3, 2};
  const nn::LSTM moved_lstm = std::move(lstm);
  CHECK_THAT(thrown([&] { lstm(graph.input("steps", {DType::f32, Shape{2, 1, 3}})); }), contains("Error"));

  nn::PReLU prelu_layer;
  const nn::PReLU moved_prelu = std::move(prelu_layer);
  CHECK_THAT(thrown([&] { prelu_layer(graph.find("x")); }), contains("a layer is used after it was moved from"));

  Dataset set = small();
  const Dataset kept = std::move(set);
  CHECK_THAT(thrown([&] { after.fit(set); }), contains("Error"));
  CHECK_THAT(thrown([&] { static_cast<void>(after.predict(set)); }), contains("Error"));
}

TEST_CASE("nothing is refused where something is wanted", "[core][misuse]") {
  const DevicePtr none;
  Graph graph;
  const Value y = relu(graph.input("x", kPair));
  const Dataset nothing;
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] {
             Trainer{classifier(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, none};
           },
           [&] {
             Trainer{classifier(), Loss{}, optim::Sgd{.lr = 0.1}, device()};
           },
           [&] {
             Trainer{std::shared_ptr<nn::Module>(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device()};
           },
           [&] { Variables(none, 1); },
           [&] { static_cast<void>(compile(graph, y, nullptr)); },
           [&] { trainer().fit(nothing); },
           [&] { static_cast<void>(trainer().evaluate(nothing)); },
           [&] { static_cast<void>(trainer().predict(nothing)); },
           [&] { static_cast<void>(trainer().predict(Tensor{})); },
           [&] { static_cast<void>(trainer().predict(Tensor(DType::f32, Shape{}))); },
           [&] { trainer().refresh_statistics(nothing); },
           [&] { trainer().fit(small(), {.validate = nothing}); },
           [&] { trainer().fit(small(), {.callbacks = {nullptr}}); },
           [&] { trainer().fit(small(), {.epochs = -1}); },
           [&] { trainer().fit(small(), {.batch = 0}); },
           [&] { trainer().fit(small(), {.batch = -4}); },
           [&] { static_cast<void>(trainer().evaluate(small(), {.batch = 0})); },
           [&] { static_cast<void>(data::from_arrays(Tensor{}, Tensor{})); },
           [&] { static_cast<void>(data::slice(nothing, 0, 1)); },
           [&] { static_cast<void>(data::subset(small(), std::vector<std::int32_t>{99})); },
           [&] { static_cast<void>(data::synthetic(Shape{0}, 0, 0, 0)); },
           [&] { static_cast<void>(data::Loader(small(), {.batch = 4}, {})); },
           [&] {
             static_cast<void>(data::Loader(small(), {.batch = 4}, {{}, {}}));
           },
           [&] {
             Trainer{classifier(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device(), {.groups = {optim::Group{}}}}
                 .fit(small());
           },
           [&] {
             Trainer{nn::Sequential{}, loss::cross_entropy, optim::Sgd{.lr = 0.1}, device()}.fit(small());
           },
           [&] {
             Trainer{classifier(), [](Value, Value) { return Value{}; }, optim::Sgd{.lr = 0.1}, device()}.fit(small());
           },
           [&] {
             optim::Optimizer sgd = optim::Sgd{.lr = 0.1};
             const optim::Optimizer moved = std::move(sgd);
             Trainer{classifier(), loss::cross_entropy, sgd, device()}.fit(small());
           },
           [&] { trainer().save("/nowhere/at/all"); },
           [&] { trainer().load("/nowhere/at/all"); },
       }) {
    const std::string message = thrown(use);
    INFO(message);
    CHECK((message.starts_with("ArgumentError") || message.starts_with("ShapeError") || message.starts_with("Error")));
  }
}
