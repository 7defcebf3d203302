// A denoising autoencoder: learns to take noise away from pictures of clothing, and writes a PNG of ten test pictures,
// the same with noise, and what the network makes of them.
//   ./denoising_autoencoder [device] [epochs] [samples]      5 epochs of 20,000 samples unless given
#include <algorithm>
#include <array>
#include <cmath>
#include <concord/concord.hpp>
#include <iostream>
#include <random>

using namespace concord;

/// (N, 1, 28, 28) → (N, 1, 28, 28). In training it spoils its own input.
struct Autoencoder : nn::Module {
  nn::Sequential body{nn::Flatten{},       nn::Linear{784, 512}, nn::ReLU{},           nn::Linear{512, 64}, nn::ReLU{},
                      nn::Linear{64, 512}, nn::ReLU{},           nn::Linear{512, 784}, nn::Sigmoid{}};
  Value forward(Value x) override {
    Graph& graph = x.graph();
    const Value seen = graph.training() ? x + random_normal(graph, x.shape(), 0, 0.4F) : x;
    return reshape(body(seen), x.shape());
  }
  Children children() override { return {{"body", &body}}; }
};

/// Pictures as features and as what is to be made of them.
Dataset pictures(std::string_view split, std::int64_t count) {
  const Dataset images = data::slice(data::fashion_mnist(split), 0, count);
  Tensor values(DType::f32, images.features.shape());
  const auto pixels = images.features.values<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) values.values<float>()[i] = static_cast<float>(pixels[i]) / 255;
  return data::from_arrays(values, values);
}

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 5;
  const Dataset train = pictures("train", argc > 3 ? std::stoi(argv[3]) : 20000), test = pictures("test", 10);

  Trainer trainer{Autoencoder{}, loss::mse, optim::Adam{.lr = 1e-3}, device, {.seed = 1}};
  trainer.fit(train, {.epochs = epochs, .batch = 64, .callbacks = {std::make_shared<ProgressPrinter>(std::cerr)}});

  // Thirty pictures: clean, noisy, cleaned again.
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 0.4F);
  Tensor noisy(DType::f32, test.features.shape());
  const auto clean = test.features.values<float>();
  std::ranges::transform(clean, noisy.values<float>().begin(), [&](float value) { return value + noise(random); });
  const Tensor cleaned = trainer.predict(noisy);

  Tensor all(DType::f32, Shape{30, 1, 28, 28});
  auto end = all.values<float>().begin();
  for (const Tensor* row : std::array<const Tensor*, 3>{&test.features, &noisy, &cleaned}) {
    double error = 0;
    for (std::size_t i = 0; i < clean.size(); ++i) error += std::pow(row->values<float>()[i] - clean[i], 2);
    std::cout << "mean squared error " << error / static_cast<double>(clean.size()) << '\n';
    end = std::ranges::copy(row->values<float>(), end).out;
  }
  io::write_png("denoised.png", io::picture_grid(all, 10));
  std::cout << "the three rows of denoised.png\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
