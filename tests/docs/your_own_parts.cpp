// The programs of docs/guide/your-own-layer-loss-optimizer.md.
#include <sstream>

#include "guide_test.hpp"

namespace concord {
namespace {

// [block]
/// relu(x + F(x)), with two convolutions as F.
struct Residual : nn::Module {
  nn::Conv2d first, second;

  explicit Residual(int channels)
      : first{channels, channels, 3, {.padding = 1}}, second{channels, channels, 3, {.padding = 1}} {}

  Value forward(Value x) override { return relu(x + second(relu(first(x)))); }

  /// The names of the saved parameters: "first.weight", "second.bias", …
  Children children() override { return {{"first", &first}, {"second", &second}}; }
};
// [end]

// [parameter]
/// x * sigmoid(beta * x), with a learned beta for each channel.
struct Swish : nn::Module {
  VariablePtr beta;

  explicit Swish(int channels) : beta{make_parameter(Shape{channels, 1, 1}, nn::init::constant(1))} {}

  Value forward(Value x) override {
    const Scalar value = scalar::input(0), slope = scalar::input(1);
    return pointwise("swish", {x, parameter(x.graph(), beta, "beta")}, value * scalar::sigmoid(slope * value));
  }
};
// [end]

// [loss]
/// Cross-entropy, and a small penalty on large logits.
Value modest_cross_entropy(Value logits, Value labels) {
  return loss::cross_entropy(logits, labels) + 0.001F * mean(square(logits));
}
// [end]

// [optimizer]
/// Gradient descent by the sign of a momentum: each weight moves by the learning rate, up or down.
struct SignMomentum {
  double lr = 1e-3;
  double momentum = 0.9;

  optim::Rule rule() const {
    const auto m = static_cast<float>(momentum);
    return {.name = "sign_momentum",
            .lr = lr,
            .states = {{.name = "momentum_buffer"}},
            .update = [m](const optim::UpdateTerms& terms) -> std::vector<Scalar> {
              const Scalar buffer = m * terms.states[0] + terms.gradient;
              const Scalar sign = scalar::less(0.0F, buffer) - scalar::less(buffer, 0.0F);
              return {terms.weight - terms.lr * sign, buffer};  // the new weight, then the new states
            }};
  }
};
// [end]

// [metric]
/// 1 for each sample whose label is among the 2 likeliest classes, else 0.
Value among_first_two(Value outputs, Value labels) {
  const Value classes = top_k(outputs, 2).indices;  // i32 (N, 2)
  const Value is_label =
      pointwise("is_label", {classes, reshape(labels, {-1, 1})}, scalar::equal(scalar::input(0), scalar::input(1)));
  return sum(is_label, {1});  // (N)
}
// [end]

// [callback]
/// Stops when the network is good enough on a set that is not the validation set.
struct StopWhenGood : Callback {
  Dataset data;
  explicit StopWhenGood(Dataset set) : data(std::move(set)) {}
  void on_epoch(TrainingControl& training, const EpochReport& report) override {
    if (training.trainer().evaluate(data).accuracy < 0.9) return;
    training.trainer().save("good_after_" + std::to_string(report.epoch) + ".safetensors");
    training.stop();
  }
};
// [end]

TEST_CASE("guide: layers, a loss and an optimizer of one's own", "[docs]") {
  const test::InEmptyFolder folder;
  const DevicePtr device = test::guide_device();
  // [train]
  nn::Sequential net{nn::Conv2d{1, 8, 3, {.stride = 2, .padding = 1}}, Swish{8}, Residual{8}, nn::Flatten{},
                     nn::Linear{8 * 4 * 4, 4}};
  Trainer trainer{net, modest_cross_entropy, SignMomentum{.lr = 1e-3}, device};
  const auto [train, held_out] = data::split(data::synthetic(Shape{1, 8, 8}, 4, 1000), 200);
  const History history = trainer.fit(train, {.epochs = 10,
                                              .batch = 50,
                                              .validate = held_out,
                                              .metrics = {{"top 2", among_first_two}},
                                              .schedule = optim::schedule::cosine(10),
                                              .callbacks = {std::make_shared<StopWhenGood>(held_out)}});
  const double top_2 = history.epochs.back().validation->named.at("top 2");
  // [end]
  CHECK(trainer.evaluate(held_out).accuracy.value() > 0.8);
  CHECK(top_2 > 0.8);
  CHECK(trainer.variables()->contains("1.beta"));
  CHECK(trainer.variables()->contains("2.first.weight"));
}

TEST_CASE("guide: a schedule of one's own", "[docs]") {
  // [schedule]
  const optim::Schedule halves_every_1000_steps = [](double base, const optim::Progress& progress) {
    return base / static_cast<double>(1 + progress.step / 1000);
  };
  // [end]
  CHECK(halves_every_1000_steps(0.1, {.step = 1500}) == Approx(0.05));
}

TEST_CASE("guide: parameters in groups", "[docs]") {
  const DevicePtr device = test::guide_device();
  const Dataset data = data::synthetic(Shape{8}, 3, 96);
  // [groups]
  nn::Sequential net{nn::Linear{8, 16}, nn::ReLU{}, nn::Linear{16, 3}};
  Trainer trainer{net,
                  loss::cross_entropy,
                  optim::AdamW{.lr = 1e-3},
                  device,
                  {.clip = {.norm = 1},
                   .groups = {{.match = optim::named("0.*"), .frozen = true},     // the first layer does not change
                              {.match = optim::vectors(), .weight_decay = 0}}}};  // no decay on biases
  // [end]
  trainer.prepare({DType::f32, Shape{8}});
  const Tensor before = trainer.variables()->read("0.weight");
  trainer.fit(data, {.epochs = 1, .batch = 32});
  const Tensor after = trainer.variables()->read("0.weight");
  CHECK(std::ranges::equal(before.bytes(), after.bytes()));
}

TEST_CASE("guide: a training loop of one's own", "[docs]") {
  const DevicePtr device = test::guide_device();
  std::ostringstream out;
  // [loop]
  const auto variables = std::make_shared<Variables>(device, 1);  // weights and optimizer state, seed 1
  nn::Sequential net{nn::Linear{2, 32}, nn::Tanh{}, nn::Linear{32, 1}};

  // The whole step is one graph: forward, loss, gradients, clipping, update.
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{64, 2}});
  const Value y = graph.input("y", {DType::f32, Shape{64, 1}});
  const Value loss = loss::mse(net(x), y);
  optim::minimize(loss, optim::Adam{.lr = 1e-2}, {.clip = {.norm = 1}});
  Program step = compile(graph, loss, variables);

  Tensor points(DType::f32, Shape{64, 2}), products(DType::f32, Shape{64, 1});
  for (int i = 0; i < 300; ++i) {
    for (std::size_t row = 0; row < 64; ++row) {
      const float a = static_cast<float>((i + row * 7) % 17) / 8 - 1,
                  b = static_cast<float>((i * 5 + row) % 13) / 6 - 1;
      points.values<float>()[2 * row] = a;
      points.values<float>()[2 * row + 1] = b;
      products.values<float>()[row] = a * b;
    }
    step.write("x", points);
    step.write("y", products);
    step.run();
  }
  optim::require_applied(graph, step);  // throws NonFinite if the loss or a gradient was not finite
  out << "loss " << step.read(loss).values<float>()[0] << '\n';
  // [end]
  CHECK(step.read(loss).values<float>()[0] < 0.05F);
}

}  // namespace
}  // namespace concord
