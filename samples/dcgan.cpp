// A DCGAN (Radford et al., 2016) learns to draw clothing: a generator makes pictures of noise, a discriminator tells
// them from photographs. Two programs share the weights, and each trains its side with the other's frozen.
//   ./dcgan [device] [epochs] [samples]      10 epochs of 20,000 samples unless given; writes dcgan.png
#include <algorithm>
#include <concord/concord.hpp>
#include <iostream>
#include <random>

using namespace concord;

constexpr std::int64_t kBatch = 64, kNoise = 64;

/// All weights begin normal with deviation 0.02.
template <class Layer>
Layer narrow(Layer layer) {
  layer.weight()->init = nn::init::normal(0, 0.02);
  return layer;
}

/// A network whose parameters are named "<name>.…".
nn::Sequential named(std::string name, nn::Sequential layers) {
  return nn::Sequential().push(std::move(name), std::move(layers));
}

/// The two sides and what both programs are made of.
struct Gan {
  nn::Sequential generator = named(  // (N, 64, 1, 1) → (N, 1, 28, 28) in (-1, 1)
      "generator",
      nn::Sequential{narrow(nn::ConvTranspose2d{kNoise, 64, 7, {.bias = false}}), nn::BatchNorm2d{64}, nn::ReLU{},
                     narrow(nn::ConvTranspose2d{64, 32, 4, {.stride = 2, .padding = 1, .bias = false}}),
                     nn::BatchNorm2d{32}, nn::ReLU{},
                     narrow(nn::ConvTranspose2d{32, 1, 4, {.stride = 2, .padding = 1}}), nn::Tanh{}});
  nn::Sequential discriminator = named(  // (N, 1, 28, 28) → the logit of its being real (N, 1)
      "discriminator",
      nn::Sequential{narrow(nn::Conv2d{1, 32, 4, {.stride = 2, .padding = 1}}), nn::LeakyReLU{0.2F},
                     narrow(nn::Conv2d{32, 64, 4, {.stride = 2, .padding = 1, .bias = false}}), nn::BatchNorm2d{64},
                     nn::LeakyReLU{0.2F}, nn::Flatten{}, narrow(nn::Linear{64 * 7 * 7, 1})});

  Value pictures(Graph& graph) { return generator(random_normal(graph, {kBatch, kNoise, 1, 1})); }
  Value loss(Value images, float answer) {
    const Value logits = discriminator(images);
    return loss::bce_with_logits(logits, full(images.graph(), logits.shape(), answer));
  }
};

/// A step of the side `name`; the parameters of the other stay as they are.
Program learning(Graph& graph, Value loss, const std::string& name, const std::string& other,
                 const VariablesPtr& variables) {
  const optim::Group frozen{.match = optim::named(other + ".*"), .frozen = true};
  optim::minimize(loss, optim::Adam{.lr = 2e-4, .betas = {0.5, 0.999}}, {.groups = {frozen}, .name = name});
  return compile(graph, {{loss}}, variables);
}

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 10;
  const Dataset train = data::slice(data::fashion_mnist("train"), 0, argc > 3 ? std::stoi(argv[3]) : 20000);
  if (train.size() < kBatch)
    throw ArgumentError(std::to_string(train.size()) + " samples are less than a batch of 64: take more");

  Gan gan;
  const auto variables = std::make_shared<Variables>(device, 1);
  Graph telling, drawing, showing;
  const Value photographs = telling.input("photographs", {DType::u8, Shape{kBatch, 1, 28, 28}}) / 127.5F - 1.0F;
  const Value told = gan.loss(photographs, 1) + gan.loss(gan.pictures(telling), 0);
  Program tell = learning(telling, told, "discriminator", "generator", variables);
  const Value drawn = gan.loss(gan.pictures(drawing), 1);
  Program draw = learning(drawing, drawn, "generator", "discriminator", variables);
  showing.set_training(false);
  const Value shown = gan.generator(showing.input("noise", {DType::f32, Shape{64, kNoise, 1, 1}})) * 0.5F + 0.5F;
  Program show = compile(showing, {{shown}}, variables);
  std::mt19937 random(7);  // the same noise each epoch: one sees the pictures grow
  std::normal_distribution<float> normal;
  Tensor noise(DType::f32, Shape{64, kNoise, 1, 1});
  std::ranges::generate(noise.values<float>(), [&] { return normal(random); });
  show.write("noise", noise);

  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const std::vector<std::int32_t> order = data::permutation(train.size(), 1, static_cast<std::uint32_t>(epoch));
    for (std::int64_t i = 0; i + kBatch <= train.size(); i += kBatch) {
      tell.write("photographs", data::subset(train, std::span(order).subspan(i, kBatch)).features);
      tell.run();
      draw.run();
    }
    optim::require_applied(telling, tell, {}, "discriminator");  // throws where a step was not finite
    optim::require_applied(drawing, draw, {}, "generator");
    show.run();
    io::write_png("dcgan.png", io::picture_grid(show.read(shown), 16));
    std::cout << "epoch " << epoch << "/" << epochs << ": losses " << tell.read(told).values<float>()[0] << " and "
              << draw.read(drawn).values<float>()[0] << ", dcgan.png" << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
