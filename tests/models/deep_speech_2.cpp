// Deep Speech 2 in a Trainer: utterances of different lengths in one batch, their letters padded with zeros.
#include "ops/ctc_reference.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSamples = 3, kFrequencies = 161, kFrames = 24, kLetters = 6;

const std::vector<Labels>& transcripts() {
  static const std::vector<Labels> all{{5, 5, 1, 28, 2}, {7}, {3, 9, 3}};
  return all;
}

/// Noise that ends with each utterance, and silence up to the length of the longest.
Dataset utterances() {
  Dataset data;
  data.name = "utterances";
  data.features = Tensor(DType::f32, Shape{kSamples, 1, kFrequencies, kFrames});
  data.labels = Tensor(DType::i32, Shape{kSamples, kLetters});
  const auto values = data.features.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t frame = i % kFrames, sample = i / (kFrequencies * kFrames);
    const std::size_t frames = kFrames - 6 * sample;
    values[i] = frame < frames ? std::sin(static_cast<float>(i * i % 1009)) : 0.0F;
  }
  for (std::size_t n = 0; n < kSamples; ++n) {
    const Labels& letters = transcripts()[n];
    for (std::size_t i = 0; i < letters.size(); ++i) {
      data.labels.values<std::int32_t>()[n * kLetters + i] = static_cast<std::int32_t>(letters[i]);
    }
  }
  return data;
}

/// From logits (N, T, classes).
double expected_loss(const Tensor& outputs) {
  const Array log_p = log_softmaxed(to_array(outputs));
  const std::int64_t steps = outputs.shape()[1], classes = outputs.shape()[2];
  double mean = 0;
  for (std::int64_t n = 0; n < kSamples; ++n) {
    Array alone(Shape{steps, 1, classes});
    const auto size = static_cast<std::ptrdiff_t>(alone.values.size());
    std::copy_n(log_p.values.begin() + n * size, size, alone.values.begin());
    const Labels& letters = transcripts()[static_cast<std::size_t>(n)];
    mean += by_recursion(alone, 0, steps, letters, 0) / static_cast<double>(letters.size()) / kSamples;
  }
  return mean;
}

}  // namespace

TEST_CASE("deep_speech_2 trains on utterances of different length", "[models]") {
  const models::Model& model = models::find("deep_speech_2");
  const Dataset data = utterances();
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer{models::make(model.name), models::loss_of(model.task), optim::Sgd{.lr = 1e-3}, device, {.seed = 2}};
    const double before = trainer.evaluate(data, {.batch = kSamples}).loss;
    CHECK(before == Approx(expected_loss(trainer.predict(data))).epsilon(1e-4));
    CHECK(before == Approx(trainer.evaluate(data, {.batch = 1}).loss).epsilon(1e-4));  // padded alike, each alone
    const History history = trainer.fit(data, {.epochs = 3, .batch = kSamples});
    CHECK(history.epochs.back().loss < history.epochs.front().loss);
    CHECK(trainer.evaluate(data, {.batch = kSamples}).loss ==
          Approx(expected_loss(trainer.predict(data))).epsilon(1e-4));
  }
}
