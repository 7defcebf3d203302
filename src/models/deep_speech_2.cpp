// A network of the form of Deep Speech 2 (Amodei et al., "Deep Speech 2: End-to-End Speech Recognition in English and
// Mandarin", 2016): spectrograms (N, 1, 161, T) → logits of the letters (N, T/2, classes), trained by CTC.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/nn/recurrent.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr int kFrequencies = 161, kChannels = 32, kHidden = 800, kLayers = 5;
constexpr int kFeatures = kChannels * ((kFrequencies + 3) / 4);

Value clipped(Value x) { return hardtanh(x, 0, 20); }

struct DeepSpeech2 : nn::Module {
  nn::Conv2d conv1{1, kChannels, {41, 11}, {.stride = 2, .padding = {20, 5}, .bias = false}};
  nn::Conv2d conv2{kChannels, kChannels, {21, 11}, {.stride = {2, 1}, .padding = {10, 5}, .bias = false}};
  nn::BatchNorm2d bn1{kChannels}, bn2{kChannels};
  nn::GRU rnn{kFeatures, kHidden, {.num_layers = kLayers, .batch_first = true, .bidirectional = true}};
  nn::Linear fc;
  explicit DeepSpeech2(std::int64_t classes) : fc(2 * kHidden, classes) {}
  Value forward(Value x) override {
    const Value maps = clipped(bn2(conv2(clipped(bn1(conv1(x))))));  // (N, 32, 41, T/2)
    const Value steps = transpose(maps, {0, 3, 1, 2});
    return fc(rnn(reshape(steps, {steps.shape()[0], steps.shape()[1], -1})));
  }
  Children children() override {
    return {{"conv1", &conv1}, {"bn1", &bn1}, {"conv2", &conv2}, {"bn2", &bn2}, {"rnn", &rnn}, {"fc", &fc}};
  }
};

}  // namespace

Model deep_speech_2() {
  return {"deep_speech_2",
          "speech to letters: two convolutions, five bidirectional GRU layers, CTC",
          Shape{1, kFrequencies, 400},
          29,
          56563133,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<DeepSpeech2>(variant.classes);
          },
          Shape{1, kFrequencies, 24},
          Task::transcription};
}

}  // namespace concord::models
