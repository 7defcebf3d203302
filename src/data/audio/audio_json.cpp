// AudioFeatures as JSON:
//   {"version":1,"rate":16000,"seconds":4.0,"window":0.02,"hop":0.01,"mels":0,"normalisation":"recording","classes":[]}
#include <algorithm>
#include <array>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/audio.hpp"

namespace concord::data {
namespace {

constexpr int kAudioVersion = 1;
constexpr auto kAudioNormalisations =
    std::to_array<std::pair<std::string_view, AudioNormalisation>>({{"none", AudioNormalisation::none},
                                                                    {"recording", AudioNormalisation::recording},
                                                                    {"features", AudioNormalisation::features}});
constexpr auto kAudioFields = std::to_array<std::string_view>(
    {"version", "rate", "seconds", "window", "hop", "mels", "normalisation", "classes"});

AudioFeatures audio_features_of(const nlohmann::json& json, std::string_view subject) {
  const JsonFields fields(json, std::string(subject));
  for (const auto& [name, value] : json.items()) {
    CONCORD_CHECK(std::ranges::find(kAudioFields, name) != kAudioFields.end(), FormatError,
                  "{}: the field \"{}\" is not known", subject, printable(name));
  }
  const int version = fields.get<int>("version");
  CONCORD_CHECK(version == kAudioVersion, FormatError, "{}: version {}; this program reads version {}", subject,
                version, kAudioVersion);
  AudioFeatures features;
  fields.read("rate", features.rate);
  fields.read("seconds", features.seconds);
  fields.read("window", features.window);
  fields.read("hop", features.hop);
  fields.read("mels", features.mels);
  fields.read("classes", features.class_names);
  const auto word = fields.get<std::string>("normalisation");
  const auto* const found = std::ranges::find(kAudioNormalisations, word, [](const auto& pair) { return pair.first; });
  CONCORD_CHECK(found != kAudioNormalisations.end(), FormatError, "{}: the normalisation \"{}\" is not known", subject,
                printable(word));
  features.normalisation = found->second;
  try {
    features.check();
  } catch (const ArgumentError& error) {
    throw FormatError(fmt::format("{}: {}", subject, error.what()));
  }
  return features;
}

}  // namespace

std::string AudioFeatures::to_json() const {
  nlohmann::ordered_json object;
  object["version"] = kAudioVersion;
  object["rate"] = rate;
  object["seconds"] = seconds;
  object["window"] = window;
  object["hop"] = hop;
  object["mels"] = mels;
  for (const auto& [name, value] : kAudioNormalisations) {
    if (value == normalisation) object["normalisation"] = name;
  }
  object["classes"] = class_names;
  return object.dump();
}

AudioFeatures AudioFeatures::from_json(std::string_view text, std::string_view subject) {
  return read_json(text, subject, [&](const nlohmann::json& json) { return audio_features_of(json, subject); });
}

}  // namespace concord::data
