// The Fourier transform, the resampler and the spectrogram, against their definitions and against librosa.
#include <complex>

#include "concord/core/philox.hpp"
#include "concord/data/audio/sound_resampler.hpp"
#include "concord/data/audio/spectrogram.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::vector<float> noise(std::size_t count) {
  const Philox random(7, philox_purpose("test"));
  std::vector<float> sound(count);
  for (std::size_t i = 0; i < count; ++i) sound[i] = random.uniform(i) - 0.5F;
  return sound;
}

/// The largest distance from `expected`, leaving out `edge` samples at both ends.
double largest_error(const std::vector<float>& sound, const std::vector<float>& expected, std::size_t edge) {
  double largest = 0;
  for (std::size_t i = edge; i + edge < sound.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(sound[i]) - static_cast<double>(expected[i])));
  }
  return largest;
}

std::vector<float> resampled(const std::vector<float>& sound, std::int64_t from, std::int64_t to) {
  const data::SoundResampler resampler(from, to);
  std::vector<float> result(static_cast<std::size_t>(resampler.output_of(static_cast<std::int64_t>(sound.size()))));
  resampler(sound, result);
  return result;
}

std::vector<float> spectrogram_of(const std::vector<float>& sound, data::AudioFeatures features) {
  features.seconds = static_cast<double>(sound.size()) / static_cast<double>(features.rate);
  std::vector<float> dst(static_cast<std::size_t>(features.features() * features.frames()));
  data::Spectrogram::Memory memory;
  data::Spectrogram{features}(sound, dst, memory);
  return dst;
}

}  // namespace

TEST_CASE("the Fourier transform is the sum that defines it, for every size", "[data]") {
  data::RealFourier::Memory memory;
  for (const std::size_t size : {2, 4, 6, 8, 14, 20, 22, 30, 64, 98, 202, 320, 400, 512, 882, 960}) {
    const std::vector<float> x = noise(size);
    std::vector<float> power(size / 2 + 1);
    data::RealFourier{size}.power(x, power, memory);
    double error = 0, largest = 0;
    for (std::size_t k = 0; k <= size / 2; ++k) {
      std::complex<double> sum = 0;
      for (std::size_t j = 0; j < size; ++j) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(j * k % size) / static_cast<double>(size);
        sum += static_cast<double>(x[j]) * std::polar(1.0, angle);
      }
      error = std::max(error, std::abs(std::norm(sum) - static_cast<double>(power[k])));
      largest = std::max(largest, std::norm(sum));
    }
    CAPTURE(size);
    CHECK(error < 2e-6 * largest);
  }
  CHECK_THROWS_AS(data::RealFourier{7}, ArgumentError);
}

TEST_CASE("resampling keeps what both rates can hold", "[data]") {
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{8000, 16000},
                                                                 {48000, 16000},
                                                                 {44100, 16000},
                                                                 {22050, 16000},
                                                                 {11025, 16000},
                                                                 {16000, 44100},
                                                                 {16000, 8000}}) {
    CAPTURE(from, to);
    const int lower = std::min(from, to);
    const auto count = static_cast<std::size_t>(from / 10);
    for (const double part : {0.01, 0.2, 0.425}) {  // of the lower rate
      const std::vector<float> sound = resampled(sine(part * lower, from, count), from, to);
      CHECK(sound.size() == (count * static_cast<std::size_t>(to) + static_cast<std::size_t>(from) - 1) /
                                static_cast<std::size_t>(from));
      const auto edge = static_cast<std::size_t>(40.0 * to / lower);
      CHECK(largest_error(sound, sine(part * lower, to, sound.size()), edge) < 1e-4);
    }
    if (from <= to) continue;
    // What the lower rate cannot hold does not come back as another tone.
    const std::vector<float> silent(resampled(sine(0.52 * to, from, count), from, to));
    CHECK(largest_error(silent, std::vector<float>(silent.size()), 40) < 1e-4);
  }
}

TEST_CASE("resampling a part gives the same samples", "[data]") {
  const std::vector<float> sound = noise(4410);
  const data::SoundResampler resampler(44100, 16000);
  const std::vector<float> all = resampled(sound, 44100, 16000);
  std::vector<float> part(100);
  const auto needed = static_cast<std::size_t>(resampler.input_for(100));
  resampler(std::span(sound).first(needed), part);
  CHECK(std::equal(part.begin(), part.end(), all.begin()));
  CHECK(needed < 500);
  CHECK(resampler.input_for(0) == 0);
  CHECK_THROWS_AS((data::SoundResampler(767999, 191999)), FormatError);
}

TEST_CASE("a spectrogram has its largest power at the frequency of a tone", "[data]") {
  data::AudioFeatures features{.normalisation = data::AudioNormalisation::none};
  CHECK(features.features() == 161);
  const std::vector<float> rows = spectrogram_of(sine(1000, 16000, 1600), features);
  REQUIRE(rows.size() == 161 * 10);
  std::size_t largest = 0;
  for (std::size_t row = 0; row < 161; ++row) {
    if (rows[row * 10 + 5] > rows[largest * 10 + 5]) largest = row;
  }
  CHECK(largest == 20);  // of 50 Hz each
  // A Hann window passes half of the amplitude: (0.5·320/2·0.5)².
  CHECK(rows[20 * 10 + 5] == Approx(std::log(1600.0)).margin(1e-4));
  CHECK(rows[80 * 10 + 5] < -10);
}

TEST_CASE("normalised features have mean 0 and deviation 1", "[data]") {
  for (const auto how : {data::AudioNormalisation::recording, data::AudioNormalisation::features}) {
    const std::vector<float> rows = spectrogram_of(noise(8000), {.mels = 40, .normalisation = how});
    const std::size_t part = how == data::AudioNormalisation::recording ? rows.size() : 50;
    for (std::size_t first = 0; first < rows.size(); first += part) {
      double sum = 0, squares = 0;
      for (std::size_t i = first; i < first + part; ++i) {
        sum += static_cast<double>(rows[i]);
        squares += static_cast<double>(rows[i]) * static_cast<double>(rows[i]);
      }
      CHECK(sum / static_cast<double>(part) == Approx(0).margin(1e-4));
      CHECK(squares / static_cast<double>(part) == Approx(1).margin(1e-3));
    }
  }
}

TEST_CASE("frames behind the sound are zeros, and silence is too", "[data]") {
  data::AudioFeatures features{.seconds = 0.1, .mels = 20};
  std::vector<float> dst(20 * 10, -1);
  data::Spectrogram::Memory memory;
  const data::Spectrogram spectrogram(features);
  spectrogram(noise(321), dst, memory);  // 3 frames
  for (std::size_t row = 0; row < 20; ++row) {
    CHECK(dst[row * 10 + 2] != 0);
    CHECK(std::all_of(dst.begin() + static_cast<std::ptrdiff_t>(row * 10 + 3),
                      dst.begin() + static_cast<std::ptrdiff_t>(row * 10 + 10), [](float x) { return x == 0; }));
  }
  spectrogram(std::vector<float>(1600), dst, memory);
  CHECK(std::all_of(dst.begin(), dst.end(), [](float x) { return std::abs(x) < 1e-6F; }));
}

TEST_CASE("mel filters that have no frequency are refused", "[data]") {
  CHECK_THROWS_AS(data::mel_filters(400, 16000, 512), ArgumentError);
  CHECK(data::mel_filters(128, 16000, 512).size() == 128);
}

// librosa 0.11: log(|stft(x, n_fft=320 or 512, hop_length=160, win_length=320, pad_mode="constant")|² + 2^-24) of
// float64, and the product with filters.mel(sr=16000, n_fft=512, n_mels=40).
TEST_CASE("a spectrogram is librosa's", "[data]") {
  std::vector<float> sound(1600);
  for (std::size_t i = 0; i < sound.size(); ++i) {
    const double t = static_cast<double>(i) / 16000, turn = 2 * std::numbers::pi;
    sound[i] = static_cast<float>(0.4 * std::sin(turn * 440 * t) + 0.2 * std::sin(turn * 3000 * t * (1 + t)));
  }
  struct Golden {
    std::size_t row;
    float at_0, at_4, at_9;
  };
  const auto check = [&](std::int64_t mels, const std::vector<Golden>& goldens) {
    const std::vector<float> rows =
        spectrogram_of(sound, {.mels = mels, .normalisation = data::AudioNormalisation::none});
    for (const Golden& golden : goldens) {
      CAPTURE(mels, golden.row);
      CHECK(rows[golden.row * 10] == Approx(golden.at_0).margin(2e-3));
      CHECK(rows[golden.row * 10 + 4] == Approx(golden.at_4).margin(2e-3));
      CHECK(rows[golden.row * 10 + 9] == Approx(golden.at_9).margin(2e-3));
    }
  };
  check(0, {{0, 1.8018F, -9.1214F, -9.1176F},
            {9, 5.5135F, 6.8797F, 6.8797F},
            {60, 4.073F, -5.8572F, -11.7767F},
            {66, -0.2429F, 3.7236F, -5.86F},
            {160, -4.9505F, -16.6353F, -16.635F}});
  check(40, {{0, -1.5856F, -11.1273F, -11.1244F},
             {7, -0.8572F, -4.5148F, -4.515F},
             {25, -4.5257F, -15.4536F, -16.5227F},
             {39, -8.3525F, -16.6355F, -16.6355F}});
}
