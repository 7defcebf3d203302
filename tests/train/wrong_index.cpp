// An index outside an embedding: the sample of the data set is named, wherever the network meets it.
#include "concord/nn/embedding.hpp"
#include "files.hpp"
#include "small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSamples = 23, kWords = 4, kRows = 5;
constexpr std::size_t kWrongSample = 17;

/// Sentences of four words; the third of sample 17 is no row of the embedding.
Dataset sentences() {
  Dataset data;
  data.name = "sentences";
  data.features = Tensor(DType::i32, Shape{kSamples, kWords});
  data.labels = Tensor(DType::i32, Shape{kSamples});
  data.classes = 3;
  auto words = data.features.values<std::int32_t>();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::int32_t>(i * 7 % kRows);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kSamples); ++i) {
    data.labels.values<std::int32_t>()[i] = static_cast<std::int32_t>(i % 3);
  }
  words[kWrongSample * kWords + 2] = 99;
  return data;
}

struct Reader : nn::Module {
  nn::Embedding words{kRows, 6};
  nn::Linear last{kWords * 6, 3};
  Value forward(Value x) override { return last(reshape(words(x), {-1, kWords * 6})); }
  Children children() override { return {{"words", &words}, {"last", &last}}; }
};

void check_message(const std::string& message, const std::string& part) {
  INFO(message);
  for (const std::string& wanted :
       {std::string("index 99 of sample 17 "), std::string("outside [0, 5)"), std::string("'words"), part}) {
    CHECK_THAT(message, contains(wanted));
  }
  CHECK_THAT(message, !contains("learning rate"));
}

}  // namespace

TEST_CASE("an index outside an embedding names the sample of the data set", "[train]") {
  const Dataset data = sentences();
  for (const DevicePtr& device : devices()) {
    const double resident = GENERATE(0.4, 0.0);  // or streamed
    CAPTURE(device->info().id, resident);
    const auto make = [&] {
      return Trainer{Reader{}, loss::cross_entropy, optim::Sgd{}, device, {.resident_fraction = resident}};
    };
    Trainer trained = make(), traced = make(), asked = make();
    const std::string training = "Weights and optimizer keep their values from before that step";
    check_message(message_of<ArgumentError>([&] { trained.fit(data, {.epochs = 1, .batch = 4}); }), training);
    check_message(message_of<ArgumentError>([&] { traced.fit(data, {.batch = 4, .nan_trace = true}); }), training);
    check_message(message_of<ArgumentError>([&] { (void)asked.evaluate(data, {.batch = 4}); }), "evaluate: ");
    check_message(message_of<ArgumentError>([&] { (void)asked.predict(data, 4); }), "predict: ");
    // What is right goes on as if nothing had been.
    CHECK(std::isfinite(asked.evaluate(data::slice(data, 0, 16), {.batch = 4}).loss));
  }
}
