// A data set of your own as a class: pictures of circles and squares that are drawn when they are read, new ones in
// each epoch. A small network learns to tell them apart, and loader threads draw while it computes.
//   ./own_samples [device] [epochs] [samples]      auto, 5 epochs of 4,000 samples
#include <algorithm>
#include <cmath>
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

/// Grey pictures [1, 24, 24] of classes 0, circle, and 1, square.
class Shapes final : public Samples {
 public:
  Shapes(std::int64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
    name = "shapes";
    class_names = {"circle", "square"};
  }

  [[nodiscard]] std::int64_t size() const override { return count_; }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override {
    return {{"", {DType::u8, Shape{1, kSide, kSide}}, 1.0F / 255}};  // a byte b is read as b/255
  }
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override {
    return {{.name = "", .spec = {DType::i32, Shape{}}, .classes = 2}};
  }
  /// The class is known without drawing: balanced orders and folds ask for it.
  [[nodiscard]] std::optional<std::int32_t> class_of(std::int64_t row) const override {
    return static_cast<std::int32_t>(row % 2);
  }

  /// Several threads draw at the same time. Random numbers come from the row and the epoch alone, so a picture does not
  /// depend on the thread that draws it.
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    const std::int32_t label = *class_of(row);
    const SampleRandom own{seed_, random.epoch, random.row};
    const float radius = 4 + 5 * own.uniform("radius", 0);
    const float x0 = radius + (kSide - 1 - 2 * radius) * own.uniform("centre", 0);
    const float y0 = radius + (kSide - 1 - 2 * radius) * own.uniform("centre", 1);
    const int brightness = 100 + static_cast<int>(150 * own.uniform("brightness", 0));
    for (int i = 0; i < kSide * kSide; ++i) {
      const float x = static_cast<float>(i % kSide) - x0, y = static_cast<float>(i / kSide) - y0;
      const float distance = label == 0 ? std::hypot(x, y) : std::max(std::abs(x), std::abs(y));
      columns[0][static_cast<std::size_t>(i)] = static_cast<std::byte>(distance <= radius ? brightness : 0);
    }
    std::ranges::copy(std::as_bytes(std::span(&label, 1)), columns[1].begin());
  }

 private:
  static constexpr int kSide = 24;
  std::int64_t count_;
  std::uint64_t seed_;
};

int main(int argc, char** argv) try {
  const DevicePtr device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 5;
  const Shapes train(argc > 3 ? std::stoi(argv[3]) : 4000, 1);
  const Shapes test(1000, 2);

  nn::Sequential net{
      nn::Conv2d{1, 8, 5, {.stride = 2}}, nn::ReLU{}, nn::Conv2d{8, 16, 3, {.stride = 2}}, nn::ReLU{}, nn::Flatten{},
      nn::Linear{16 * 4 * 4, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 2e-3}, device, {.seed = 1}};
  trainer.fit(train, {.epochs = epochs, .batch = 50, .callbacks = {std::make_shared<ProgressPrinter>(std::cout)}});
  std::cout << "test: " << 100 * trainer.evaluate(test).accuracy.value() << " % of " << test.size()
            << " new pictures\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
