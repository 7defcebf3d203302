// A network with two inputs and two losses. It sees the upper and the lower half of a picture of clothing in two
// towers, and finds its class and how much of the picture is covered.
//   ./two_towers [device] [epochs] [samples]      auto, 2 epochs of 20,000 samples
#include <algorithm>
#include <cmath>
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

/// Half a picture (N, 1, 14, 28) → 64 numbers (N, 64).
nn::Sequential tower() {
  return nn::Sequential{nn::Conv2d{1, 16, 3, {.padding = 1}}, nn::ReLU{}, nn::MaxPool2d{2}, nn::Flatten{},
                        nn::Linear{16 * 7 * 14, 64},          nn::ReLU{}};
}

struct TwoTowers : nn::Module {
  nn::Sequential upper = tower(), lower = tower();
  nn::Linear kind{128, 10}, cover{128, 1};

  [[nodiscard]] Children children() override {
    return {{"upper", &upper}, {"lower", &lower}, {"kind", &kind}, {"cover", &cover}};
  }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"upper", "lower"}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value both = concat({upper(in["upper"]), lower(in["lower"])}, 1);
    return {{"class", kind(both)}, {"cover", sigmoid(cover(both))}};
  }
};

/// Two columns of features, two of labels.
Dataset halves(const Dataset& pictures) {
  const std::int64_t n = pictures.size();
  Tensor upper(DType::u8, {n, 1, 14, 28}), lower(DType::u8, {n, 1, 14, 28}), cover(DType::f32, {n, 1});
  constexpr std::size_t kHalf = 14 * 28;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const auto picture = pictures.features.values<std::uint8_t>().subspan(i * 2 * kHalf, 2 * kHalf);
    std::ranges::copy(picture.first(kHalf), upper.values<std::uint8_t>().subspan(i * kHalf).begin());
    std::ranges::copy(picture.last(kHalf), lower.values<std::uint8_t>().subspan(i * kHalf).begin());
    const auto covered = std::ranges::count_if(picture, [](std::uint8_t pixel) { return pixel > 0; });
    cover.values<float>()[i] = static_cast<float>(covered) / (2 * kHalf);
  }
  return data::from_columns({{"upper", upper}, {"lower", lower}}, {{"class", pictures.labels, 10}, {"cover", cover}});
}

int main(int argc, char** argv) try {
  const DevicePtr device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 2;
  const Dataset train = data::slice(data::fashion_mnist("train"), 0, argc > 3 ? std::stoi(argv[3]) : 20000);

  Trainer trainer{TwoTowers{},
                  {{"class", loss::cross_entropy}, {"cover", loss::mse, 10.0F}},
                  optim::Adam{.lr = 1e-3},
                  device,
                  {.seed = 1}};
  trainer.fit(halves(train), {.epochs = epochs, .callbacks = {std::make_shared<ProgressPrinter>(std::cout)}});
  const Metrics test = trainer.evaluate(halves(data::fashion_mnist("test")));
  std::cout << "test: " << 100 * test.named.at("class.accuracy") << " % of the classes, covered part off by "
            << 100 * std::sqrt(test.named.at("cover.loss")) << " % of the picture (root mean square)\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
