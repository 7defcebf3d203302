// The programs of docs/guide/several-inputs.md.
#include "guide_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

// [network]
/// An image (N, 1, 8, 8) and a row of a table (N, 5) → a class and a price.
struct Shop : nn::Module {
  nn::Sequential image{nn::Conv2d{1, 8, 3}, nn::ReLU{}, nn::GlobalAvgPool2d{}, nn::Flatten{}};
  nn::Linear table{5, 8}, kind{16, 4}, price{16, 1};

  [[nodiscard]] Children children() override {
    return {{"image", &image}, {"table", &table}, {"kind", &kind}, {"price", &price}};
  }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"image", "table"}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value both = concat({image(in["image"]), relu(table(in["table"]))}, 1);
    return {{"class", kind(both)}, {"price", price(both)}};
  }
};
// [end]

// [masked]
/// Sequences of different lengths: words (N, T, 6) and lengths i32 (N) → (N, 2).
struct Reader : nn::Module {
  nn::MultiheadAttention attention{6, 2};
  nn::Linear head{6, 2};

  [[nodiscard]] Children children() override { return {{"attention", &attention}, {"head", &head}}; }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"words", "lengths"}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value seen = attention(in["words"], {.lengths = in["lengths"]});  // padding is not attended to
    return head(reshape(slice(seen, 1, 0, 1), {seen.shape()[0], 6}));       // of the first word
  }
};
// [end]

Tensor random_numbers(const Shape& shape) { return data::synthetic(shape, 1, 1).features.reshaped(shape); }

Dataset shop_data(std::int64_t n) {
  const Tensor images = random_numbers({n, 1, 8, 8}), rows = random_numbers({n, 5}), prices = random_numbers({n, 1});
  Tensor classes(DType::i32, {n});
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    classes.values<std::int32_t>()[i] = static_cast<std::int32_t>(i % 4);
  }
  // [columns]
  const Dataset data = data::from_columns({{"image", images}, {"table", rows}},                     // features
                                          {{"class", classes, /*classes=*/4}, {"price", prices}});  // labels
  // [end]
  return data;
}

}  // namespace

TEST_CASE("guide: several inputs and losses", "[docs]") {
  const DevicePtr device = guide_device();
  const Dataset data = shop_data(32);
  // [train]
  Trainer trainer{Shop{}, {{"class", loss::cross_entropy}, {"price", loss::mse, 0.5F}}, optim::Adam{}, device};
  trainer.fit(data, {.epochs = 2, .batch = 8});
  const Metrics metrics = trainer.evaluate(data);
  const double accuracy = metrics.named.at("class.accuracy"), squares = metrics.named.at("price.loss");
  const std::map<std::string, Tensor> found = trainer.predict_values(data);  // found.at("price") is (N, 1)
  // [end]
  CHECK(accuracy >= 0);
  CHECK(squares > 0);
  CHECK(found.at("price").shape() == Shape{32, 1});

  // [joined]
  const auto objective = [](const Values& outputs, const Values& targets) {
    const Value kind = loss::cross_entropy(outputs["class"], targets["class"]);
    return kind + 0.1F * mean(abs(outputs["price"])) + loss::mse(outputs["price"], targets["price"]);
  };
  Trainer other{Shop{}, objective, optim::Adam{}, device};
  // [end]
  other.fit(data, {.batch = 8});

  // [metric]
  const auto error = [](const Values& outputs, const Values& targets) {
    return abs(outputs["price"] - targets["price"]);  // for each sample; the metric is their mean
  };
  const Metrics more = trainer.evaluate(data, {.metrics = {{"price error", error}}});
  // [end]
  CHECK(more.named.contains("price error"));
}

TEST_CASE("guide: sequences of different lengths", "[docs]") {
  const DevicePtr device = guide_device();
  const Tensor words = random_numbers({12, 5, 6}), targets = random_numbers({12, 2});
  Tensor lengths(DType::i32, {12});
  std::ranges::fill(lengths.values<std::int32_t>(), 3);
  Trainer trainer{Reader{}, loss::mse, optim::Sgd{}, device};
  trainer.fit(data::from_columns({{"words", words}, {"lengths", lengths}}, {{"", targets}}), {.batch = 4});
}

TEST_CASE("guide: a session runs a network", "[docs]") {
  const InEmptyFolder folder;
  const DevicePtr device = guide_device();
  const Dataset data = shop_data(8);
  Trainer trainer{Shop{}, {{"class", loss::cross_entropy}, {"price", loss::mse}}, optim::Adam{}, device};
  trainer.fit(data, {.batch = 4});
  trainer.save("shop.safetensors");
  const Tensor image = random_numbers({1, 1, 8, 8}), row = random_numbers({1, 5});
  // [session]
  Session session{Shop{}, device};
  session.load("shop.safetensors");
  const NamedTensors out = session.run({{"image", image}, {"table", row}});
  const Tensor price = out.at("price");  // (1, 1)
  // [end]
  CHECK(price.shape() == Shape{1, 1});
}
