// audio: of --data.
#include "concord/cli/audio_data.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

template <class Number>
void read_number(const DataSpec& spec, const char* key, Number& number) {
  const std::string text = spec.option(key);
  if (text.empty()) return;
  const auto value = number_in_text<Number>(text);
  CONCORD_CHECK(value.has_value(), ArgumentError, "audio: {}={} is not a number", key, text);
  number = *value;
}

/// Those of the spec, and of `before` where it says nothing.
data::AudioFeatures features_in(const DataSpec& spec, data::AudioFeatures before) {
  read_number(spec, "rate", before.rate);
  read_number(spec, "seconds", before.seconds);
  read_number(spec, "mels", before.mels);
  const std::string by = spec.option("normalise");
  if (by == "none") before.normalisation = data::AudioNormalisation::none;
  if (by == "recording") before.normalisation = data::AudioNormalisation::recording;
  if (by == "features") before.normalisation = data::AudioNormalisation::features;
  CONCORD_CHECK(by.empty() || by == "none" || by == "recording" || by == "features", ArgumentError,
                "audio: normalise={} is none of none, recording and features", by);
  return before;
}

}  // namespace

void check_audio_fits(const DataSpec& spec, const Trained& trained) {
  const auto require = [&](const char* key, bool is_same) {
    CONCORD_CHECK(spec.option(key).empty() || is_same, ArgumentError,
                  "audio: {}={} is not what the weights were trained with; leave it out", key, spec.option(key));
  };
  require("alphabet", trained.alphabet.empty() || spec.option("alphabet") == trained.alphabet);
  if (!trained.audio) return;
  const data::AudioFeatures given = features_in(spec, *trained.audio);
  require("rate", given.rate == trained.audio->rate);
  require("seconds", given.seconds == trained.audio->seconds);
  require("mels", given.mels == trained.audio->mels);
  require("normalise", given.normalisation == trained.audio->normalisation);
}

data::AudioOptions audio_options(const DataSpec& spec, const models::Model& model, const Trained& trained) {
  data::AudioOptions options;
  options.features = features_in(spec, trained.audio.value_or(options.features));
  options.transcripts = model.task == models::Task::transcription;
  const std::string transcripts = spec.option("transcripts");
  CONCORD_CHECK(transcripts.empty() || transcripts == "yes" || transcripts == "no", ArgumentError,
                "audio: transcripts={} is neither yes nor no", transcripts);
  CONCORD_CHECK(transcripts.empty() || options.transcripts == (transcripts == "yes"), ArgumentError,
                "audio: transcripts={} contradicts {}, which is a model for {}", transcripts, model.name,
                models::name_of(model.task));
  CONCORD_CHECK(options.transcripts || spec.option("alphabet").empty(), ArgumentError,
                "audio: an alphabet is for transcripts; {} is a model for {}", model.name, models::name_of(model.task));
  if (!options.transcripts) return options;
  options.alphabet = trained.alphabet.empty() ? spec.option("alphabet") : trained.alphabet;
  if (model.input.rank() > 0) options.frames_per_step = 2;  // of deep_speech_2, the one network for transcripts
  return options;
}

void check_fits_audio(const Shape& sample, const models::Model& model) {
  CONCORD_CHECK(model.task != models::Task::transcription || model.input.rank() == 0 ||
                    (sample[0] == model.input[0] && sample[1] == model.input[1]),
                ArgumentError,
                "{} takes spectrograms of {} frequencies, and these have {}; it was made for rate=16000 without mels",
                model.name, model.input[1], sample[1]);
}

int classes_of_alphabet(const std::string& alphabet) {
  const auto characters =
      std::ranges::count_if(alphabet, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
  return static_cast<int>(characters) + 1;
}

}  // namespace concord::cli
