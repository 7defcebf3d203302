// The programs of docs/guide/your-own-data.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "guide_test.hpp"

namespace concord {
namespace {

// [arrays]
/// Two classes of points in the plane: inside and outside a circle.
Dataset circles(std::int64_t n) {
  Tensor points(DType::f32, Shape{n, 2});  // features, one row for each sample
  Tensor labels(DType::i32, Shape{n});     // a class index for each sample
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  const auto xy = points.values<float>();
  const auto label = labels.values<std::int32_t>();
  for (std::size_t i = 0; i < label.size(); ++i) {
    xy[2 * i] = number(random);
    xy[2 * i + 1] = number(random);
    label[i] = std::hypot(xy[2 * i], xy[2 * i + 1]) < 0.7F ? 1 : 0;
  }
  return data::from_arrays(points, labels, 2);
}
// [end]

// [own]
/// Pictures [1, 16, 16] of classes 0, a circle, and 1, a square, drawn when they are read.
class Shapes final : public Samples {
 public:
  explicit Shapes(std::int64_t count) : count_(count) { class_names = {"circle", "square"}; }
  std::int64_t size() const override { return count_; }
  std::vector<ColumnSpec> feature_specs() const override { return {{"", {DType::u8, Shape{1, 16, 16}}, 1.0F / 255}}; }
  std::vector<ColumnSpec> label_specs() const override { return {{"", {DType::i32, Shape{}}, 1, 0, /*classes=*/2}}; }
  std::optional<std::int32_t> class_of(std::int64_t row) const override { return static_cast<std::int32_t>(row % 2); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    const std::int32_t label = *class_of(row);
    const float radius = 3 + 3 * random.uniform("radius", 0);
    for (int i = 0; i < 16 * 16; ++i) {
      const float x = static_cast<float>(i % 16) - 7.5F, y = static_cast<float>(i / 16) - 7.5F;
      const float distance = label == 0 ? std::hypot(x, y) : std::max(std::abs(x), std::abs(y));
      columns[0][static_cast<std::size_t>(i)] = std::byte{distance <= radius ? std::uint8_t{255} : std::uint8_t{0}};
    }
    std::ranges::copy(std::as_bytes(std::span(&label, 1)), columns[1].begin());
  }

 private:
  std::int64_t count_;
};
// [end]

// [stream]
/// Points in the plane and whether they lie in a circle, as if they came over a line: nobody knows how many follow.
class Readings final : public data::SampleStream {
 public:
  std::vector<ColumnSpec> feature_specs() const override { return {{"", {DType::f32, Shape{2}}}}; }
  std::vector<ColumnSpec> label_specs() const override { return {{"", {DType::i32, Shape{}}, 1, 0, /*classes=*/2}}; }
  void start(std::int64_t pass) override { line_.seed(static_cast<std::uint32_t>(pass)); }  // the same line again
  bool next(std::span<const std::span<std::byte>> columns) override {
    std::uniform_real_distribution<float> number(-1, 1);
    const std::array<float, 2> point{number(line_), number(line_)};
    const std::int32_t label = std::hypot(point[0], point[1]) < 0.7F ? 1 : 0;
    std::ranges::copy(std::as_bytes(std::span(point)), columns[0].begin());
    std::ranges::copy(std::as_bytes(std::span(&label, 1)), columns[1].begin());
    return true;  // false at the end of a pass
  }

 private:
  std::mt19937 line_;
};
// [end]

TEST_CASE("guide: a data set from arrays", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [train]
  const auto [train, held_out] = data::split(circles(2000), 400);
  nn::Sequential net{nn::Linear{2, 32}, nn::ReLU{}, nn::Linear{32, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(train, {.epochs = 10, .batch = 50});
  const double accuracy = trainer.evaluate(held_out).accuracy.value();
  // [end]
  CHECK(accuracy > 0.9);
}

TEST_CASE("guide: targets that are numbers", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [regression]
  std::vector<float> x, y;
  for (int i = 0; i < 256; ++i) {
    x.push_back(static_cast<float>(i) / 128 - 1);
    y.push_back(x.back() * x.back());
  }
  const Dataset data = data::from_arrays(Tensor::of(Shape{256, 1}, x), Tensor::of(Shape{256, 1}, y));
  nn::Sequential net{nn::Linear{1, 32}, nn::Tanh{}, nn::Linear{32, 1}};
  Trainer trainer{net, loss::mse, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(data, {.epochs = 100, .batch = 64});
  const Tensor predicted = trainer.predict(Tensor::of(Shape{1, 1}, std::vector<float>{0.5F}));  // close to 0.25
  // [end]
  CHECK(predicted.values<float>()[0] == Approx(0.25).margin(0.1));
}

TEST_CASE("guide: images as bytes, with an augmentation", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [images]
  const std::int64_t n = 256;
  Tensor images(DType::u8, Shape{n, 1, 8, 8});  // (N, channels, height, width), one byte per pixel
  Tensor labels(DType::i32, Shape{n});
  for (std::int64_t i = 0; i < n; ++i) {
    // Class 0 is bright in the upper half, class 1 in the lower half.
    const std::int32_t label = static_cast<std::int32_t>(i % 2);
    labels.values<std::int32_t>()[static_cast<std::size_t>(i)] = label;
    auto pixels = images.values<std::uint8_t>().subspan(static_cast<std::size_t>(i * 64), 64);
    for (std::size_t p = 0; p < 32; ++p) pixels[p + (label == 0 ? 0 : 32)] = static_cast<std::uint8_t>(100 + i % 100);
  }
  Dataset data = data::from_arrays(images, labels, 2);
  data.class_names = {"upper", "lower"};
  data.scale = 1.0F / 127.5F;  // a byte b becomes b * scale + shift: here from -1 to 1
  data.shift = -1;
  // [end]
  // [augment]
  // Adds the same random brightness to all pixels of an image.
  const data::Augmentation brighten = [](std::span<std::byte> pixels, const data::SampleInfo& sample) {
    std::seed_seq seed{static_cast<std::uint32_t>(sample.row), sample.epoch};
    std::array<std::uint32_t, 1> number{};
    seed.generate(number.begin(), number.end());
    const std::uint32_t more = number[0] % 32;
    for (std::byte& pixel : pixels) {
      const std::uint32_t value = std::to_integer<std::uint32_t>(pixel) + more;
      pixel = static_cast<std::byte>(value > 255 ? 255 : value);
    }
  };
  nn::Sequential net{nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::ReLU{}, nn::Flatten{}, nn::Linear{256, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(data, {.epochs = 3,
                     .batch = 32,
                     .augmentation = data::in_order({data::random_horizontal_flip(1), brighten}),
                     .loader_threads = 2});
  // [end]
  CHECK(trainer.evaluate(data).accuracy.value() > 0.9);
}

TEST_CASE("guide: a text as a data set", "[docs]") {
  const test::InEmptyFolder folder;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "one line and then another one\n";
  test::write_file("book.txt", lines);
  const DevicePtr device = test::guide_device();
  // [text]
  const data::Characters text = data::characters("book.txt", {.length = 32});
  const auto net = models::make("char_lstm", {.classes = static_cast<int>(text.alphabet.size())});
  Trainer trainer{net,
                  models::loss_of(models::Task::language),
                  optim::Adam{.lr = 3e-3},
                  device,
                  {.metadata = {{"alphabet", text.alphabet}}}};
  trainer.fit(text.train, {.epochs = 1, .batch = 16});
  // [end]
  CHECK(trainer.evaluate(text.validation).loss < 10);
}

TEST_CASE("guide: files in the formats that are read", "[docs]") {
  const test::InEmptyFolder folder;
  // [missing]
  try {
    const Dataset mine = data::idx("my-images-idx3-ubyte.gz", "my-labels-idx1-ubyte.gz");
  } catch (const IoError& error) {
    // the message names the missing file
  }
  // [end]
  CHECK_THROWS_AS(data::idx("my-images-idx3-ubyte.gz", "my-labels-idx1-ubyte.gz"), IoError);
}

TEST_CASE("guide: a data set as a class", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [parts]
  const auto [rest, held_out] = data::split(SharedSamples(Shapes(1000)), 100);
  nn::Sequential net{nn::Conv2d{1, 8, 3, {.stride = 2}}, nn::ReLU{}, nn::Flatten{}, nn::Linear{8 * 7 * 7, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 5e-3}, device};
  trainer.fit(*rest, {.epochs = 3, .batch = 50, .validate = held_out, .balance = true, .loader_threads = 2});
  // [end]
  CHECK(trainer.evaluate(*held_out).accuracy.value() > 0.8);
  CHECK(rest->size() == 900);
}

TEST_CASE("guide: cross-validation", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [folds]
  const Dataset points = circles(600);
  const auto make = [&](int fold) {
    nn::Sequential net{nn::Linear{2, 16}, nn::ReLU{}, nn::Linear{16, 2}};
    return Trainer{
        net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device, {.seed = static_cast<std::uint64_t>(fold)}};
  };
  const auto folds = data::folds(points.labels.values<std::int32_t>(), 3);  // each class in its share
  std::vector<double> accuracies;
  for (const FoldResult& fold : cross_validate(make, points, points, folds, {.epochs = 10, .batch = 50})) {
    accuracies.push_back(fold.metrics.accuracy.value());
  }
  const auto [mean, deviation] = statistics_of(accuracies);
  // [end]
  CHECK(accuracies.size() == 3);
  CHECK(mean > 0.8);
  CHECK(deviation < 0.2);
}

TEST_CASE("guide: a stream", "[docs]") {
  const DevicePtr device = test::guide_device();
  // [stream_fit]
  constexpr std::int64_t kBatch = 50, kSteps = 40;  // of an epoch
  const data::StreamedSamples readings(std::make_shared<Readings>(), {.epoch = kBatch * kSteps, .buffer = 500});
  nn::Sequential net{nn::Linear{2, 32}, nn::ReLU{}, nn::Linear{32, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(readings, {.epochs = 5, .batch = kBatch, .validate = circles(500)});
  // [end]
  CHECK(trainer.evaluate(circles(500)).accuracy.value() > 0.9);
}

}  // namespace
}  // namespace concord
