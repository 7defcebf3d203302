// A training step of each family of networks, as small as it can be: for slow devices, such as those that are simulated
// (scripts/test-oclgrind). Weights, data and updates have buffers of their own, since Oclgrind 21.10 forgets what it
// knows of a buffer that the host writes a part of.
#include <cmath>
#include <map>
#include <optional>

#include "concord/optim/minimize.hpp"
#include "ops/op_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct Outcome {
  double loss = 0;
  std::map<std::string, Tensor> variables;
};

/// After a step of Adam on the loss `loss` makes of the network's result.
Outcome stepped(const DevicePtr& device, nn::Module& network, const Tensor& data,
                const std::function<Value(Value)>& loss) {
  Graph graph;
  const Value value = loss(network(operand(graph, 0, data)));
  const Value is_fine = optim::minimize(value, optim::Adam{.lr = 0.01}, {.clip = {.norm = 1}});
  const auto variables = std::make_shared<Variables>(device, 7);
  const auto program = std::make_shared<Program>(compile(graph, std::vector{value, is_fine}, variables));
  keep(program);
  program->run();
  CHECK(to_array(program->read(is_fine)).values[0] == 1);
  return {to_array(program->read(value)).values[0], variables->read_all()};
}

/// Devices agree, weights are finite and not what they were.
void check_step(const std::function<std::shared_ptr<nn::Module>()>& network, const Tensor& data,
                const std::function<Value(Value)>& loss) {
  std::optional<Outcome> first;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Outcome outcome = stepped(device, *network(), data, loss);
    CHECK(std::isfinite(outcome.loss));
    if (!first) first = outcome;
    CHECK(std::abs(outcome.loss - first->loss) <= 1e-4 * std::max(1.0, std::abs(first->loss)));
    for (const auto& [name, tensor] : outcome.variables) {
      if (tensor.dtype() != DType::f32) continue;
      INFO(name);
      const Array got = to_array(tensor), expected = to_array(first->variables.at(name));
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        // Adam's first step moves by the gradient's sign: a weight whose gradient is 0 but for rounding by twice the
        // rate.
        if (!(std::abs(got.values[i] - expected.values[i]) <= 0.0201)) FAIL_CHECK(i << ": " << got.values[i]);
      }
    }
  }
}

Tensor images(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  const Array numbers = normal(shape, 3);
  for (std::size_t i = 0; i < numbers.values.size(); ++i)
    tensor.values<float>()[i] = static_cast<float>(numbers.values[i]);
  return tensor;
}

Tensor words(const Shape& shape, std::int32_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i) % count;
  return Tensor::of(shape, tokens);
}

/// Cross-entropy with the classes 0, 1, … in turn, at every place of logits (N, …, C).
Value classes(Value logits) {
  const Shape& shape = logits.shape();
  const std::int64_t count = shape[shape.rank() - 1], rows = shape.elements() / count;
  std::vector<std::int32_t> targets(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = static_cast<std::int32_t>(i) % static_cast<std::int32_t>(count);
  const Value target = operand(logits.graph(), 1, Tensor::of(Shape{rows}, targets));
  return mean(cross_entropy_rows(reshape(logits, {rows, count}), target));
}

template <class... Layers>
std::shared_ptr<nn::Module> network_of(Layers... layers) {
  return std::make_shared<nn::Sequential>(std::move(layers)...);
}

/// y = relu(norm(conv(x)) + x)
struct Residual : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  explicit Residual(int channels) : conv{channels, channels, 3, {.padding = 1, .bias = false}}, norm{channels} {}
  Value forward(Value x) override { return relu(norm(conv(x)) + x); }
};

}  // namespace

TEST_CASE("a small step of a perceptron", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Linear{9, 8}, nn::ReLU{}, nn::Dropout{0.25F}, nn::Linear{8, 3});
      },
      images({4, 9}), classes);
}

TEST_CASE("a small step of a convolutional network, with pooling of both kinds", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Conv2d{1, 4, 3}, nn::Tanh{}, nn::AvgPool2d{2}, nn::Conv2d{4, 6, 3, {.padding = 1}},
                          nn::ReLU{}, nn::MaxPool2d{2}, nn::Flatten{}, nn::Linear{6 * 2 * 2, 3});
      },
      images({2, 1, 10, 10}), classes);
}

TEST_CASE("a small step of a residual network", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Conv2d{3, 4, 3, {.stride = 2, .padding = 1}}, nn::BatchNorm2d{4}, nn::ReLU{}, Residual{4},
                          nn::GlobalAvgPool2d{}, nn::Flatten{}, nn::Linear{4, 3});
      },
      images({2, 3, 9, 8}), classes);
}

TEST_CASE("a small step of depthwise convolutions with squeeze and excitation", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Conv2d{3, 8, 1}, nn::BatchNorm2d{8}, nn::ReLU{},
                          nn::Conv2d{8, 8, 3, {.stride = 2, .padding = 1, .groups = 8}}, nn::SqueezeExcite{8, 2},
                          nn::GlobalAvgPool2d{}, nn::Flatten{}, nn::Linear{8, 3});
      },
      images({2, 3, 7, 6}), classes);
}

TEST_CASE("a small step of an autoencoder of images, with transposed convolutions", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Conv2d{1, 4, 4, {.stride = 2, .padding = 1}}, nn::LeakyReLU{0.2F},
                          nn::ConvTranspose2d{4, 1, 4, {.stride = 2, .padding = 1}}, nn::Sigmoid{});
      },
      images({2, 1, 8, 6}), [](Value made) { return mean(square(made - 0.25F)); });
}

TEST_CASE("a small step of LSTM and GRU", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::LSTM{5, 6, {.batch_first = true, .bidirectional = true}},
                          nn::GRU{12, 4, {.batch_first = true}}, nn::Linear{4, 3});
      },
      images({2, 4, 5}), classes);
}

TEST_CASE("a small step of a transformer", "[models][small_steps]") {
  check_step(
      [] {
        return network_of(nn::Embedding{7, 8}, nn::TransformerEncoderLayer{8, 2, {.feed_forward = 12}},
                          nn::Linear{8, 7});
      },
      words({2, 6}, 7), classes);
}
