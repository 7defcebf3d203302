// Recordings with transcripts train a network by CTC.
#include "concord/data/audio.hpp"

#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Each frame of a spectrogram (N, 1, frequencies, T) → logits (N, T, classes).
struct FrameClassifier : nn::Module {
  nn::Linear fc;
  FrameClassifier(std::int64_t frequencies, std::int64_t classes) : fc(frequencies, classes) {}
  Value forward(Value x) override {
    const Shape shape = x.shape();
    return fc(transpose(reshape(x, {shape[0], shape[2], shape[3]}), {0, 2, 1}));
  }
  Children children() override { return {{"fc", &fc}}; }
};

}  // namespace

TEST_CASE("recordings of tones train a network to transcribe them", "[train]") {
  const TemporaryFolder folder;
  std::string list;
  for (const std::string text : {"ab", "ba", "aab", "b"}) {
    std::vector<float> sound;
    for (const char c : text) {
      const std::vector<float> tone = sine(c == 'a' ? 500 : 2000, 8000, 400);
      sound.insert(sound.end(), tone.begin(), tone.end());
      sound.insert(sound.end(), 160, 0.0F);
    }
    write_file(folder / (text + ".wav"), wav(sound, {.rate = 8000}));
    list += text + ".wav " + text + "\n";
  }
  write_file(folder / "list.txt", list);
  const data::AudioSet set = data::audio(folder / "list.txt", {.features = {.mels = 20}, .transcripts = true});
  REQUIRE(set.alphabet == "ab");
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    Trainer trainer(std::make_shared<FrameClassifier>(20, set.classes), models::loss_of(models::Task::transcription),
                    optim::Adam{.lr = 0.05}, device);
    const double before = trainer.evaluate(*set.samples, {.batch = 4}).loss;
    trainer.fit(*set.samples, {.epochs = 40, .batch = 4});
    const double after = trainer.evaluate(*set.samples, {.batch = 4}).loss;
    CHECK(std::isfinite(before));
    CHECK(after < 0.5 * before);
    const Tensor logits = trainer.predict(*set.samples, 4);
    REQUIRE(logits.shape() == Shape{4, set.features.frames(), 3});
    const auto values = logits.values<float>();
    const auto steps = static_cast<std::size_t>(set.features.frames());
    std::vector<std::int32_t> classes;
    for (std::size_t t = 0; t < steps; ++t) {  // of "ab"
      const float* const at = values.data() + t * 3;
      classes.push_back(static_cast<std::int32_t>(std::max_element(at, at + 3) - at));
    }
    CHECK(data::transcript_of(set.alphabet, classes) == "ab");
  }
}
