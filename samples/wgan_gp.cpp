// A WGAN with gradient penalty (Gulrajani et al., "Improved Training of Wasserstein GANs", 2017) learns eight Gaussians
// in the plane. The critic's loss contains the norm of its own gradient, so its training step takes a gradient of a
// gradient. Its estimate of the distance between both distributions falls while the generator learns.
//   ./wgan_gp [device] [steps of the generator]      5,000 steps unless given
#include <algorithm>
#include <cmath>
#include <concord/concord.hpp>
#include <iostream>
#include <random>

using namespace concord;

constexpr std::int64_t kBatch = 256, kNoise = 2, kWidth = 96, kShown = 2048;
constexpr int kModes = 8, kCriticSteps = 5;
constexpr float kPenalty = 0.1F, kDeviation = 0.02F;  // λ as the authors take it for this data

/// The centre of a Gaussian, on a circle.
std::array<float, 2> centre(int mode) {
  const float angle = 2 * 3.14159265F * static_cast<float>(mode) / kModes;
  return {std::sqrt(2.0F) * std::cos(angle), std::sqrt(2.0F) * std::sin(angle)};
}

/// Points (N, 2) of the mixture.
Tensor drawn(std::mt19937& random) {
  std::normal_distribution<float> around(0, kDeviation);
  Tensor points(DType::f32, Shape{kBatch, 2});
  const auto values = points.values<float>();
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto [x, y] = centre(static_cast<int>(random() % kModes));
    values[i] = x + around(random);
    values[i + 1] = y + around(random);
  }
  return points;
}

nn::Sequential network(std::string name, std::int64_t inputs, std::int64_t outputs) {
  nn::Sequential layers{nn::Linear{inputs, kWidth}, nn::ReLU{}, nn::Linear{kWidth, kWidth}, nn::ReLU{},
                        nn::Linear{kWidth, kWidth}, nn::ReLU{}, nn::Linear{kWidth, outputs}};
  return nn::Sequential().push(std::move(name), std::move(layers));
}

struct Gan {
  nn::Sequential generator = network("generator", kNoise, 2), critic = network("critic", 2, 1);

  Value points(Graph& graph, std::int64_t count) { return generator(random_normal(graph, {count, kNoise})); }

  /// (‖∇critic(x)‖ − 1)² at points between the real and the generated ones.
  Value penalty(Value real, Value generated) {
    const Value part = random_uniform(real.graph(), {kBatch, 1});
    const Value between = part * real + (1 - part) * generated;
    const Value slope = gradient(sum(critic(between)), {between}).front();
    return mean(square(norm(slope, {1}) - 1.0F));
  }
};

/// A step of the side `name`; the parameters of the other stay as they are.
Program learning(Graph& graph, Value loss, Value shown, const std::string& name, const std::string& other,
                 const VariablesPtr& variables) {
  const optim::Group frozen{.match = optim::named(other + ".*"), .frozen = true};
  optim::minimize(loss, optim::Adam{.lr = 5e-4, .betas = {0.5, 0.9}}, {.groups = {frozen}, .name = name});
  return compile(graph, {{shown}}, variables);
}

/// How many modes have points within four deviations and a little more, and the share of all points that are there.
std::string described(const Tensor& points) {
  std::array<int, kModes> near{};
  const auto values = points.values<float>();
  for (std::size_t i = 0; i < values.size(); i += 2) {
    for (int mode = 0; mode < kModes; ++mode) {
      const auto [x, y] = centre(mode);
      if (std::hypot(values[i] - x, values[i + 1] - y) < 0.2F) ++near[static_cast<std::size_t>(mode)];
    }
  }
  int all = 0, modes = 0;
  for (const int count : near) {
    all += count;
    modes += count > kShown / kModes / 10 ? 1 : 0;
  }
  return std::to_string(modes) + " of 8 modes, " + std::to_string(100 * all / static_cast<int>(kShown)) +
         " % of the points near one";
}

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const int steps = argc > 2 ? std::stoi(argv[2]) : 5000;

  Gan gan;
  const auto variables = std::make_shared<Variables>(device, 1);
  Graph judging, drawing, showing;
  showing.set_training(false);
  const Value real = judging.input("real", {DType::f32, Shape{kBatch, 2}});
  const Value generated = gan.points(judging, kBatch);
  const Value distance = mean(gan.critic(real)) - mean(gan.critic(generated));
  const Value criticism = kPenalty * gan.penalty(real, generated) - distance;
  Program judge = learning(judging, criticism, distance, "critic", "generator", variables);
  const Value fooled = -mean(gan.critic(gan.points(drawing, kBatch)));
  Program draw = learning(drawing, fooled, fooled, "generator", "critic", variables);
  const Value shown = gan.points(showing, kShown);
  Program show = compile(showing, {{shown}}, variables);

  std::mt19937 random(7);
  double estimate = 0;  // the mean since it was last shown
  const int interval = std::max(1, steps / 10);
  for (int step = 1; step <= steps; ++step) {
    for (int i = 0; i < kCriticSteps; ++i) {
      judge.write("real", drawn(random));
      judge.run();
    }
    estimate += static_cast<double>(judge.read(distance).values<float>()[0]) / interval;
    draw.run();
    if (step % interval != 0) continue;
    optim::require_applied(judging, judge, {}, "critic");  // throws where a step was not finite
    optim::require_applied(drawing, draw, {}, "generator");
    show.run();
    std::cout << "step " << step << ": the critic's estimate " << estimate << "; " << described(show.read(shown))
              << std::endl;
    estimate = 0;
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
