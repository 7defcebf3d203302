// Session: equal to the network's evaluation, for every shape, with shared weights and from several threads.
#include <cmath>
#include <thread>

#include "concord/io/safetensors.hpp"
#include "core/thrown.hpp"
#include "files.hpp"
#include "forwarding_device.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Tensor numbers(const Shape& shape, float first = 0) {
  Tensor tensor(DType::f32, shape);
  for (float& x : tensor.values<float>()) x = std::sin(first += 0.7F);
  return tensor;
}

/// Two inputs, of which the second may be missing, and two outputs.
struct Pair : nn::Module {
  nn::Linear left{6, 4}, right{3, 4};
  [[nodiscard]] Children children() override { return {{"left", &left}, {"right", &right}}; }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"a", "b"}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value a = left(in["a"]);
    const Value b = in.find("b");
    return {{"sum", b ? a + right(b) : a}, {"a", a}};
  }
};

/// A device that says it has less memory than it has.
class LimitedDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void limit_to(std::uint64_t bytes) { info_.memory = bytes; }
};

}  // namespace

TEST_CASE("a session computes what the trained network computes, for every batch", "[session]") {
  const TemporaryFolder folder;
  const Dataset data = small_data(20);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = small_trainer(device);
    trainer.fit(data, {.epochs = 2, .batch = 10});
    trainer.save(folder / "net.safetensors");
    Session loaded{small_net(), device, {.programs = 2}};
    loaded.load(folder / "net.safetensors");
    for (const std::int64_t batch : {20, 1, 7}) {
      const Dataset part = data::slice(data, 0, batch);
      const Tensor expected = trainer.predict(part, batch), found = loaded.run(part.features);
      CHECK(std::ranges::equal(found.bytes(), expected.bytes()));
    }
    CHECK(loaded.programs() == 2);
    CHECK_THAT(thrown([&] { loaded.load(folder / "none.safetensors"); }), contains("none.safetensors"));
    CHECK_THAT(thrown([&] { static_cast<void>(loaded.run(numbers({2, 5}))); }), contains("ShapeError"));
    CHECK(loaded.run(data.features).shape() == Shape{20, 3});
  }
}

TEST_CASE("weights that wait for the network are found after the program has changed its folder", "[session]") {
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  Session first{small_net(), device, {.seed = 5}}, session{small_net(), device};
  const Tensor expected = first.run(numbers({1, 6}));
  io::save_weights(folder / "net.safetensors", *first.variables(), first.variables()->names());
  {
    const InFolder inside(folder.path());
    session.load("net.safetensors");
  }
  CHECK(std::ranges::equal(session.run(numbers({1, 6})).bytes(), expected.bytes()));
}

TEST_CASE("a session runs on the weights of a trainer as they change", "[session]") {
  const Dataset data = small_data(16);
  for (const DevicePtr& device : devices()) {
    const auto network = std::make_shared<nn::Sequential>(small_net());
    Trainer trainer{network, loss::cross_entropy, optim::Sgd{.lr = 0.1F}, device};
    trainer.prepare(data);
    Session session{network, trainer.variables()};
    const Tensor before = session.run(data.features);
    trainer.fit(data, {.batch = 8});
    const Tensor after = session.run(data.features);
    CHECK_FALSE(std::ranges::equal(before.bytes(), after.bytes()));
    CHECK(std::ranges::equal(after.bytes(), trainer.predict(data).bytes()));
  }
}

TEST_CASE("a session takes inputs by name and returns outputs by name", "[session]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Session session{Pair{}, device};
    const Tensor a = numbers({2, 6}), b = numbers({2, 3}, 1);
    const NamedTensors both = session.run({{"b", b}, {"a", a}}), one = session.run(NamedTensors{{"a", a}});
    CHECK(both.at("sum").shape() == Shape{2, 4});
    CHECK(std::ranges::equal(both.at("a").bytes(), one.at("sum").bytes()));
    CHECK_FALSE(std::ranges::equal(both.at("a").bytes(), both.at("sum").bytes()));
    CHECK_THAT(thrown([&] {
                 static_cast<void>(session.run({{"a", a}, {"c", b}}));
               }),
               contains("'c' is not one of a, b"));
    CHECK_THAT(thrown([&] {
                 static_cast<void>(session.run(NamedTensors{{"b", b}}));
               }),
               contains("no value 'a' among b"));
    CHECK_THAT(thrown([&] { static_cast<void>(session.run(NamedTensors{})); }), contains("at least one input"));
    CHECK_THAT(thrown([&] { static_cast<void>(session.run(a)); }), contains("2 outputs"));
  }
}

TEST_CASE("further inputs use the weights of the file that was loaded", "[session]") {
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Tensor a = numbers({2, 6}), b = numbers({2, 3}, 1);
    Session first{Pair{}, device, {.seed = 1}}, second{Pair{}, device, {.seed = 2}};
    const NamedTensors expected = first.run({{"a", a}, {"b", b}});
    io::TensorMap weights;
    for (const std::string& name : first.variables()->persistent_names()) {
      weights.emplace(name, first.variables()->read(name));
    }
    io::write_safetensors(folder / "pair.safetensors", weights);
    second.load(folder / "pair.safetensors");
    CHECK(std::ranges::equal(second.run(NamedTensors{{"a", a}}).at("sum").bytes(), expected.at("a").bytes()));
    CHECK(std::ranges::equal(second.run({{"a", a}, {"b", b}}).at("sum").bytes(), expected.at("sum").bytes()));
  }
}

TEST_CASE("weights of another network are refused when the inputs that use them are known", "[session]") {
  const TemporaryFolder folder;
  const NamedTensors one{{"a", numbers({2, 6})}}, both{{"a", numbers({2, 6})}, {"b", numbers({2, 3}, 1)}};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Session right{Pair{}, device, {.seed = 1}};
    static_cast<void>(right.run(both));
    io::TensorMap all = right.variables()->read_all();
    const auto write = [&](const char* name, const io::TensorMap& tensors) {
      io::write_safetensors(folder / name, tensors);
      return folder / name;
    };
    const auto error = [](Session& session, const NamedTensors& inputs) {
      return thrown([&] { static_cast<void>(session.run(inputs)); });
    };
    const auto whole = write("whole", all);
    all.emplace("third.bias", numbers({4}));
    const auto more = write("more", all);
    all.erase("left.bias");
    const auto less = write("less", all);
    const auto other = write("other", {{"third.bias", numbers({4})}});

    Session session{Pair{}, device};
    session.load(more);
    CHECK(error(session, one) == "nothing");
    CHECK_THAT(error(session, both), contains("1 unexpected (third.bias)"));
    session.load(whole);
    CHECK(std::ranges::equal(session.run(both).at("sum").bytes(), right.run(both).at("sum").bytes()));
    CHECK_THAT(thrown([&] { session.load(more); }), contains("1 unexpected (third.bias)"));

    Session first_both{Pair{}, device};
    first_both.load(more);
    CHECK_THAT(error(first_both, both), contains("1 unexpected (third.bias)"));
    for (const auto& file : {less, other}) {
      Session wrong{Pair{}, device};
      wrong.load(file);
      CHECK_THAT(error(wrong, one), contains("missing") && contains("left.bias"));
    }
    Session known{Pair{}, device};
    CHECK(error(known, one) == "nothing");
    CHECK_THAT(thrown([&] { known.load(other); }), contains("missing"));
    known.load(whole);
    CHECK(std::ranges::equal(known.run(both).at("sum").bytes(), right.run(both).at("sum").bytes()));
    Session single{nn::Sequential{nn::Linear{6, 4}}, device};
    single.load(write("single", {{"0.weight", numbers({4, 6})}, {"0.bias", numbers({4})}, {"1.bias", numbers({4})}}));
    CHECK_THAT(thrown([&] { static_cast<void>(single.run(one.at("a"))); }), contains("1 unexpected (1.bias)"));
  }
}

TEST_CASE("sessions that share weights may run in several threads", "[session]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Session first{small_net(), device, {.seed = 7}};
    const Tensor expected = first.run(numbers({3, 6}));
    const std::size_t memory = device->allocated();
    std::vector<Session> sessions;
    for (int i = 0; i < 4; ++i) sessions.push_back(first.share());
    std::vector<int> right(sessions.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int run = 0; run < 5; ++run) {
          const std::int64_t rows = 1 + (run + static_cast<std::int64_t>(i)) % 3;
          const Tensor found = sessions[i].run(numbers({rows, 6}));
          const auto want = expected.values<float>().first(static_cast<std::size_t>(rows) * 3);
          right[i] += std::ranges::equal(found.values<float>(), want,
                                         [](float x, float y) { return std::abs(x - y) <= 1e-5F; });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : right) CHECK(count == 5);
    CHECK(device->allocated() - memory < 64 * 1024);  // inputs and outputs, but no weights again
    Session moved = std::move(first);
    CHECK_THAT(thrown([&] { static_cast<void>(first.run(numbers({1, 6}))); }), contains("moved from"));
  }
}

TEST_CASE("a session drops programs where the device is full", "[session]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Tensor small = numbers({20000, 6}), large = numbers({40000, 6});
    Session whole{small_net(), device, {.seed = 3}};
    const std::size_t before = device->allocated();
    const Tensor of_large = whole.run(large);
    const std::size_t bytes = device->allocated() - before;
    const Tensor of_small = whole.run(small);
    const auto limited = std::make_shared<LimitedDevice>(device);
    Session session{small_net(), limited, {.seed = 3}};
    limited->limit_to(device->allocated() + bytes + bytes / 4);
    CHECK(std::ranges::equal(session.run(small).bytes(), of_small.bytes()));
    CHECK(std::ranges::equal(session.run(large).bytes(), of_large.bytes()));
    CHECK(session.programs() == 1);
    CHECK(std::ranges::equal(session.run(small).bytes(), of_small.bytes()));
    CHECK(session.programs() == 1);
    CHECK_THROWS_AS(session.run(numbers({80000, 6})), OutOfMemory);
    CHECK(session.programs() == 0);
    CHECK(std::ranges::equal(session.run(large).bytes(), of_large.bytes()));
  }
}

TEST_CASE("a session refuses a file of another network, and keeps its weights", "[session]") {
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    Session small{small_net(), device}, other{nn::Sequential{nn::Linear{6, 2}}, device};
    static_cast<void>(other.run(numbers({1, 6})));
    io::save_weights(folder / "other.safetensors", *other.variables(), other.variables()->names());
    small.load(folder / "other.safetensors");
    CHECK_THAT(thrown([&] { static_cast<void>(small.run(numbers({1, 6}))); }), contains("missing"));
    Session right{small_net(), device, {.seed = 5}};
    const Tensor expected = right.run(numbers({1, 6}));
    io::save_weights(folder / "right.safetensors", *right.variables(), right.variables()->names());
    small.load(folder / "right.safetensors");  // in place of the one that did not fit
    CHECK(std::ranges::equal(small.run(numbers({1, 6})).bytes(), expected.bytes()));
  }
}
