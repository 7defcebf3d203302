// The same training twenty times: on one device, losses and weights have the same bits each time.
#include <algorithm>

#include "small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr int kRuns = 20;
constexpr std::int64_t kSamples = 32, kTokens = 6, kWidth = 8, kClasses = 3;

/// A training: its data, and a new network each time.
struct Training {
  std::string name;
  Dataset data;
  std::shared_ptr<nn::Module> (*network)();
};

template <class... Layers>
std::shared_ptr<nn::Module> network_of(Layers... layers) {
  return std::make_shared<nn::Sequential>(std::move(layers)...);
}

std::shared_ptr<nn::Module> images() {
  return network_of(nn::Conv2d{1, 8, 5}, nn::BatchNorm2d{8}, nn::ReLU{}, nn::MaxPool2d{2}, nn::Conv2d{8, 16, 3},
                    nn::ReLU{}, nn::Flatten{}, nn::Linear{16 * 4 * 4, 32}, nn::Dropout{0.3F}, nn::Linear{32, kClasses});
}

std::shared_ptr<nn::Module> sequences() {
  return network_of(nn::LSTM{kWidth, 16, {.num_layers = 2, .batch_first = true, .dropout = 0.2F}}, nn::Flatten{},
                    nn::Linear{kTokens * 16, kClasses});
}

/// Few words, so that many gradients meet in one row of the embedding.
std::shared_ptr<nn::Module> words() {
  return network_of(nn::Embedding{5, kWidth}, nn::TransformerEncoderLayer{kWidth, 2, {.feed_forward = 16}},
                    nn::Flatten{}, nn::Linear{kTokens * kWidth, kClasses});
}

Dataset word_data() {
  Dataset data = data::synthetic(Shape{kTokens}, kClasses, kSamples, 0);
  std::vector<std::int32_t> tokens(kSamples * kTokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i % 5);
  data.features = Tensor::of(Shape{kSamples, kTokens}, tokens);
  return data;
}

std::vector<Training> trainings() {
  return {{"images", data::synthetic(Shape{1, 16, 16}, kClasses, kSamples, 0), images},
          {"sequences", data::synthetic(Shape{kTokens, kWidth}, kClasses, kSamples, 0), sequences},
          {"words", word_data(), words}};
}

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<std::byte>> weights;
};

Outcome trained(const Training& training, const DevicePtr& device, std::uint64_t seed) {
  Trainer trainer{training.network(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.seed = seed}};
  const History history = trainer.fit(training.data, {.epochs = 2, .batch = 12});
  Outcome outcome{{}, bytes_of(trainer)};
  for (const EpochReport& epoch : history.epochs) outcome.losses.push_back(epoch.loss);
  return outcome;
}

}  // namespace

TEST_CASE("twenty trainings on one device have the same bits", "[train]") {
  for (const DevicePtr& device : devices()) {
    for (const Training& training : trainings()) {
      INFO(training.name << " on " << device->info().id);
      const Outcome first = trained(training, device, 4);
      CHECK(first.weights.size() > 4);
      for (int run = 1; run < kRuns; ++run) {
        const Outcome again = trained(training, device, 4);
        CHECK(again.losses == first.losses);
        CHECK(again.weights == first.weights);
      }
      CHECK(trained(training, device, 5).weights != first.weights);  // the bits tell of the training
    }
  }
}
