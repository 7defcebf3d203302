// A training without Trainer: trace the step once, compile it, run it. All that a step does — forward, loss, gradients,
// clipping, update — is one program on the device; the host only hands in batches.
#include <concord/concord.hpp>
#include <iostream>
#include <random>

using namespace concord;

int main() try {
  const auto variables = std::make_shared<Variables>(Device::open(), 1);  // weights and optimizer state; seed 1
  nn::Sequential net{nn::Linear{2, 32}, nn::Tanh{}, nn::Linear{32, 1}};

  // The step, for batches of 64.
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{64, 2}});
  const Value y = graph.input("y", {DType::f32, Shape{64, 1}});
  const Value loss = loss::mse(net(x), y);
  optim::minimize(loss, optim::Adam{.lr = 1e-2}, {.clip = {.norm = 1}});
  Program step = compile(graph, {{loss}}, variables);

  // Learns the product of two numbers.
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-1, 1);
  Tensor points(DType::f32, Shape{64, 2}), products(DType::f32, Shape{64, 1});
  for (int i = 1; i <= 500; ++i) {
    for (std::size_t row = 0; row < 64; ++row) {
      const float a = number(random), b = number(random);
      points.values<float>()[2 * row] = a;
      points.values<float>()[2 * row + 1] = b;
      products.values<float>()[row] = a * b;
    }
    step.write("x", points);
    step.write("y", products);
    step.run();
    if (i % 100 > 0) continue;
    optim::require_applied(graph, step);  // throws where a loss or gradient was not finite; weights are then as before
    std::cout << "step " << i << ": loss " << step.read(loss).values<float>()[0] << '\n';
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
