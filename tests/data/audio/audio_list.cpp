// Lists of recordings as samples: files of all kinds, damage, classes, transcripts.
#include <sndfile.h>

#include <thread>

#include "concord/data/audio.hpp"
#include "core/thrown.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// A folder with a list.
struct AudioFolder {
  TemporaryFolder folder;
  std::string lines;
  void add(const std::string& name, const std::string& content, const std::string& label) {
    write_file(folder / name, content);
    lines += name + "\t" + label + "\n";
  }
  [[nodiscard]] data::AudioSet open(const data::AudioOptions& options) const {
    write_file(folder / "list.txt", lines);
    return data::audio(folder / "list.txt", options);
  }
};

data::AudioFeatures plain_features(double seconds = 0.1) {
  return {.seconds = seconds, .normalisation = data::AudioNormalisation::none};
}

std::vector<float> audio_features(const data::AudioSet& set, std::int64_t row) {
  return numbers_in<float>(columns_of(*set.samples, row)[0]);
}

/// Reading the one recording says this.
std::string audio_error(const std::string& content, bool transcript = false) {
  AudioFolder folder;
  folder.add("bad.wav", content, "x");
  return thrown([&] {
    const data::AudioSet set = folder.open({.features = plain_features(), .transcripts = transcript});
    static_cast<void>(columns_of(*set.samples, 0));
  });
}

double largest_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

}  // namespace

TEST_CASE("the same sound from files of all kinds has the same features", "[data]") {
  // White noise would have other powers after rounding to 8 bits; a loud chord has them only where it is loud.
  const auto chord = [](int rate) {
    std::vector<float> sound = sine(500, rate, static_cast<std::size_t>(rate) / 10, 0.4);
    const std::vector<float> other = sine(1700, rate, sound.size(), 0.4);
    for (std::size_t i = 0; i < sound.size(); ++i) sound[i] += other[i];
    return sound;
  };
  AudioFolder folder;
  folder.add("16.wav", wav(chord(16000)), "a");
  folder.add("float.wav", wav(chord(16000), {.bits = 32, .is_float = true}), "a");
  folder.add("24.wav", wav(chord(16000), {.bits = 24}), "a");
  folder.add("8.wav", wav(chord(16000), {.bits = 8}), "b");
  folder.add("8000.wav", wav(chord(8000), {.rate = 8000}), "b");
  std::vector<float> stereo;
  for (const float x : chord(48000)) stereo.insert(stereo.end(), {1.5F * x, 0.5F * x});
  folder.add("stereo.wav", wav(stereo, {.rate = 48000, .channels = 2, .bits = 32, .is_float = true}), "b");
  const data::AudioSet set = folder.open({.features = plain_features()});
  REQUIRE(set.samples->size() == 6);
  CHECK(set.samples->class_names == std::vector<std::string>{"a", "b"});
  CHECK(set.features.class_names == set.samples->class_names);
  CHECK(set.samples->feature_specs()[0].spec == TensorSpec{DType::f32, Shape{1, 161, 10}});
  CHECK(set.samples->label_specs()[0].classes == 2);
  CHECK(set.samples->class_of(0) == 0);
  CHECK(numbers_in<std::int32_t>(columns_of(*set.samples, 4)[1]) == std::vector<std::int32_t>{1});
  const std::vector<float> expected = audio_features(set, 1);
  for (const std::int64_t row : {0, 2, 3, 4, 5}) {
    CAPTURE(set.samples->name_of(row));
    const std::vector<float> features = audio_features(set, row);
    REQUIRE(features.size() == expected.size());
    for (const std::size_t frequency : {10, 34}) {  // 500 and 1700 Hz
      for (std::size_t t = 2; t < 8; ++t) {
        CHECK(features[frequency * 10 + t] == Approx(expected[frequency * 10 + t]).margin(0.02));
      }
    }
  }
  CHECK(largest_distance(audio_features(set, 2), expected) < 0.01);
}

TEST_CASE("FLAC is read as WAV is, and its damage is told", "[data]") {
  AudioFolder folder;
  const std::vector<float> sound = sine(440, 16000, 16000);
  folder.add("a.wav", wav(sound), "a");
  SF_INFO info{};
  info.samplerate = 16000;
  info.channels = 1;
  info.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  const std::string path = (folder.folder / "a.flac").string();
  SNDFILE* const file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file != nullptr);
  std::vector<short> whole(sound.size());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    whole[i] = static_cast<short>(std::lround(static_cast<double>(sound[i]) * 32767));
  }
  sf_write_short(file, whole.data(), static_cast<sf_count_t>(whole.size()));
  sf_close(file);
  const std::string content = content_of(path);
  folder.add("a.flac", content, "a");
  folder.add("half.flac", content.substr(0, content.size() / 2), "b");
  std::string turned = content;
  turned[content.size() / 2] = static_cast<char>(turned[content.size() / 2] ^ 0x55);
  folder.add("turned.flac", turned, "b");
  const data::AudioSet set = folder.open({.features = plain_features(1)});
  CHECK(audio_features(set, 0) == audio_features(set, 1));
  const std::string message = thrown([&] { static_cast<void>(audio_features(set, 2)); });
  CHECK(contains(message, "half.flac: is "));
  CHECK(contains(message, "damaged"));
  CHECK(contains(thrown([&] { static_cast<void>(audio_features(set, 3)); }), "turned.flac: is "));
}

TEST_CASE("damaged recordings are errors with the file and the reason", "[data]") {
  const std::string good = wav(sine(440, 16000, 800));
  CHECK(audio_error(good) == "nothing");
  CHECK(contains(audio_error(""), "bad.wav: the file is empty"));
  CHECK(contains(audio_error("no sound at all, but some words of a text"), "is no recording that libsndfile"));
  CHECK(contains(audio_error(good.substr(0, 20)), "bad.wav"));
  CHECK(contains(audio_error(good.substr(0, good.size() - 100)),
                 "is truncated: its header announces 1600 bytes of sound, and 1500 follow"));
  CHECK(contains(audio_error(wav({})), "has no sound"));
  CHECK(contains(audio_error(wav(sine(440, 16000, 800), {.rate = 100})), "has 100 samples a second; 1000 to 768000"));
  CHECK(contains(audio_error(wav(std::vector<float>(65 * 8), {.channels = 65})), "has 65 channels"));
  CHECK(contains(audio_error(wav({0, NAN}, {.bits = 32, .is_float = true})), "sample 1 is nan, no sound"));
  CHECK(contains(audio_error(wav({0, 1e30F}, {.bits = 32, .is_float = true})), "no sound"));
  // Programs that write into a pipe do not know the length.
  std::string piped = good;
  piped.replace(4, 4, little(0xffffffff, 4)).replace(40, 4, little(0xffffffff, 4));
  CHECK(audio_error(piped) == "nothing");
}

TEST_CASE("a missing recording is an error when it is read, and at once if lengths are asked for", "[data]") {
  AudioFolder folder;
  folder.add("a.wav", wav(sine(440, 16000, 800)), "a");
  folder.lines += "gone.wav b\n";
  const data::AudioSet set = folder.open({.features = plain_features()});
  CHECK_THROWS_AS(columns_of(*set.samples, 1), IoError);
  CHECK_THROWS_AS(folder.open({.features = plain_features(0)}), IoError);
}

TEST_CASE("recordings are cut or padded to the seconds, and the longest counts if there are none", "[data]") {
  AudioFolder folder;
  folder.add("short.wav", wav(sine(440, 16000, 800)), "a");
  folder.add("long.wav", wav(sine(440, 48000, 9601), {.rate = 48000}), "b");
  const data::AudioSet whole = folder.open({.features = plain_features(0), .lengths_name = "frames"});
  CHECK(whole.features.seconds == Approx(0.2000625));  // in whole samples
  CHECK(whole.features.frames() == 21);
  REQUIRE(whole.samples->feature_specs().size() == 2);
  CHECK(whole.samples->feature_specs()[1] == ColumnSpec{"frames", {DType::i32, Shape{}}});
  CHECK(numbers_in<std::int32_t>(columns_of(*whole.samples, 0)[1]) == std::vector<std::int32_t>{5});
  CHECK(numbers_in<std::int32_t>(columns_of(*whole.samples, 1)[1]) == std::vector<std::int32_t>{21});
  const data::AudioSet cut = folder.open({.features = plain_features(0.1)});
  const std::vector<float> all = audio_features(whole, 1), part = audio_features(cut, 1);
  for (std::size_t row = 0; row < 161; ++row) {
    CHECK(std::equal(part.begin() + static_cast<std::ptrdiff_t>(row * 10),
                     part.begin() + static_cast<std::ptrdiff_t>(row * 10 + 9),
                     all.begin() + static_cast<std::ptrdiff_t>(row * 21)));
  }
  AudioFolder words;
  words.add("long.wav", wav(sine(440, 16000, 3200)), "ab");
  const data::AudioSet set = words.open({.features = plain_features(), .transcripts = true});
  CHECK(contains(thrown([&] { static_cast<void>(audio_features(set, 0)); }),
                 "long.wav: lasts 0.20 s; a sample has 0.1 s"));
}

TEST_CASE("transcripts become classes with zeros behind them", "[data]") {
  AudioFolder folder;
  const std::string sound = wav(sine(440, 16000, 3200));
  folder.add("a b.wav", sound, " to be ");
  folder.add("c.wav", sound, "Öl");
  folder.lines += "\n\"c.wav\"  bot\r\n";
  data::AudioOptions options{.features = plain_features(0.2), .transcripts = true};
  const data::AudioSet set = folder.open(options);
  CHECK(set.alphabet == " belotÖ");
  CHECK(set.classes == 8);
  REQUIRE(set.samples->size() == 3);
  CHECK(set.samples->label_specs()[0] == ColumnSpec{"", {DType::i32, Shape{5}}, 1.0F / 255.0F, 0, 0});
  const auto labels = [&](std::int64_t row) { return numbers_in<std::int32_t>(columns_of(*set.samples, row)[1]); };
  CHECK(labels(0) == std::vector<std::int32_t>{6, 5, 1, 2, 3});
  CHECK(labels(1) == std::vector<std::int32_t>{7, 4, 0, 0, 0});
  CHECK(labels(2) == std::vector<std::int32_t>{2, 5, 6, 0, 0});
  CHECK_FALSE(set.samples->class_of(0).has_value());

  options.alphabet = "abc";
  CHECK(contains(thrown([&] { static_cast<void>(folder.open(options)); }),
                 "list.txt, line 1: the character \"t\" is not in the alphabet of 3"));
  options.alphabet = "aa";
  CHECK(contains(thrown([&] { static_cast<void>(folder.open(options)); }), "has \"a\" twice"));
  options.alphabet.clear();
  options.label_length = 9;
  CHECK(folder.open(options).samples->label_specs()[0].spec.shape == Shape{9});
  options.label_length = 4;
  CHECK_THROWS_AS(folder.open(options), ArgumentError);
  options.label_length = 0;
  options.frames_per_step = 5;  // 20 frames, 4 steps
  CHECK(contains(thrown([&] { static_cast<void>(folder.open(options)); }),
                 "line 1: the transcript needs 5 steps of the network, and a sample has 4"));
}

TEST_CASE("damaged lists of transcripts are errors with the line", "[data]") {
  const auto error_of = [](const std::string& lines) {
    AudioFolder folder;
    folder.lines = lines;
    return thrown([&] { static_cast<void>(folder.open({.features = plain_features(), .transcripts = true})); });
  };
  CHECK(contains(error_of(""), "the list has no line"));
  CHECK(contains(error_of("\n a.wav \n"), "list.txt, line 2: there is no transcript after the path"));
  CHECK(contains(error_of("\"a.wav b\n"), "line 1: the path in quotes has no end"));
  CHECK(contains(error_of("\"a\"b c\n"), "line 1: the path in quotes"));
  CHECK(contains(error_of("\"\" c\n"), "line 1: the path is empty"));
  CHECK(contains(error_of("a.wav \xff\n"), "line 1: the transcript is not UTF-8: \\xff"));
  CHECK(contains(error_of(std::string("a.wav b\0\n", 9)), "line 1: has a zero byte"));
}

TEST_CASE("steps of a network become a transcript", "[data]") {
  CHECK(data::transcript_of("abÖ", std::vector<std::int32_t>{0, 1, 1, 0, 1, 2, 2, 3, 0, 0}) == "aabÖ");
  CHECK(data::transcript_of("ab", std::vector<std::int32_t>{}).empty());
  CHECK_THROWS_AS(data::transcript_of("ab", std::vector<std::int32_t>{3}), ArgumentError);
  CHECK(data::characters_of(std::vector<std::string>{"ba", "Ö", "a"}) == "abÖ");
}

TEST_CASE("errors of transcripts are counted in characters and words", "[data]") {
  data::TranscriptErrors errors;
  CHECK(errors.character_error_rate() == 0);
  errors.add("der Bär", "der Bär");
  CHECK(errors.characters == 7);  // of UTF-8
  CHECK(errors.word_error_rate() == 0);
  errors.add("kitten", "sitting");
  CHECK(errors.character_edits == 3);
  CHECK(errors.word_edits == 1);
  errors.add("a b c", "a c d e");
  CHECK(errors.words == 6);
  CHECK(errors.word_edits == 4);  // b is missing, d and e are too many
  data::TranscriptErrors empty;
  empty.add("", "ab");
  CHECK(empty.character_error_rate() == 2);
}

TEST_CASE("recordings have the same bytes for any number of threads, with masks too", "[data]") {
  AudioFolder folder;
  for (int i = 0; i < 6; ++i) {
    const int rate = i % 2 == 0 ? 16000 : 44100;
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".wav";
    folder.add(name, wav(sine(300 + 100 * i, rate, 4000), {.rate = rate}), i % 2 == 0 ? "x" : "y");
  }
  data::AudioOptions options{.features = {.seconds = 0.2, .mels = 40}};
  const data::AudioSet plain = folder.open(options);
  options.masks = {.time = 2, .time_width = 5, .frequency = 1, .frequency_width = 10};
  const data::AudioSet set = folder.open(options);
  const auto random_of = [](std::int64_t row) { return SampleRandom{5, 2, static_cast<std::int32_t>(row)}; };
  std::vector<std::vector<std::vector<std::byte>>> expected;
  for (std::int64_t row = 0; row < 6; ++row) expected.push_back(columns_of(*set.samples, row, random_of(row)));
  std::vector<int> differences(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    threads.emplace_back([&, i] {
      for (std::int64_t row = 5; row >= 0; --row) {
        if (columns_of(*set.samples, row, random_of(row)) != expected[static_cast<std::size_t>(row)]) ++differences[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(differences == std::vector<int>(4, 0));

  // A mask only sets zeros, and does so in other places in another epoch.
  int masked = 0;
  const auto features = numbers_in<float>(expected[0][0]), without = audio_features(plain, 0);
  for (std::size_t i = 0; i < features.size(); ++i) {
    CHECK((features[i] == without[i] || features[i] == 0));
    masked += features[i] != without[i] ? 1 : 0;
  }
  CHECK(masked > 0);
  CHECK(columns_of(*set.samples, 0, {5, 3, 0}) != expected[0]);
}

TEST_CASE("features of recordings are kept as JSON", "[data]") {
  const data::AudioFeatures features{.rate = 22050,
                                     .seconds = 1.0 / 3,
                                     .mels = 40,
                                     .normalisation = data::AudioNormalisation::features,
                                     .class_names = {"no", "yes"}};
  CHECK(data::AudioFeatures::from_json(features.to_json(), "w") == features);
  const auto error_of = [](std::string_view text) {
    return thrown([&] { static_cast<void>(data::AudioFeatures::from_json(text, "w: audio")); });
  };
  CHECK(contains(error_of("{"), "w: audio"));
  CHECK(contains(error_of("{\"version\":1}"), "w: audio"));
  std::string text = features.to_json();
  CHECK(contains(error_of(text.replace(text.find("22050"), 5, "22   ")), "the rate is 22"));
  text = features.to_json();
  CHECK(contains(error_of(text.insert(1, "\"more\":1,")), "\"more\" is not known"));
}

TEST_CASE("options of recordings outside their ranges are refused", "[data]") {
  AudioFolder folder;
  folder.add("a.wav", wav(sine(440, 16000, 800)), "a");
  for (const data::AudioFeatures& features : std::vector<data::AudioFeatures>{{.rate = 999},
                                                                              {.seconds = -1},
                                                                              {.seconds = 1e9},
                                                                              {.window = 0},
                                                                              {.window = 2},
                                                                              {.hop = 1e-9},
                                                                              {.mels = -1}}) {
    CHECK_THROWS_AS(folder.open({.features = features}), ArgumentError);
  }
  CHECK_THROWS_AS(folder.open({.alphabet = "ab"}), ArgumentError);
  CHECK_THROWS_AS(folder.open({.masks = {.time = -1}}), ArgumentError);
}
