// Frames, their powers, mel filters, logarithms, and normalisation.
#include "concord/data/audio/spectrogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

constexpr float kPowerFloor = 0x1p-24F;
constexpr double kLeastDeviation = 1e-5;

std::int64_t samples_in(double seconds, const AudioFeatures& features) {
  return std::llround(seconds * static_cast<double>(features.rate));
}

std::size_t transform_of(std::int64_t window, std::int64_t mels) {
  const auto size = static_cast<std::size_t>(window);
  return mels == 0 ? size + size % 2 : std::bit_ceil(size);
}

// Slaney's Auditory Toolbox: linear up to 1000 Hz, then logarithmic.
constexpr double kLinear = 200.0 / 3, kBreak = 1000, kBreakMel = kBreak / kLinear;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz) {
  return hertz < kBreak ? hertz / kLinear : kBreakMel + std::log(hertz / kBreak) / kLogStep;
}
double hertz_of(double mel) {
  return mel < kBreakMel ? mel * kLinear : kBreak * std::exp(kLogStep * (mel - kBreakMel));
}

struct Moments {
  double mean = 0, deviation = 0;
};

/// Of every `stride`-th number.
Moments moments_of(std::span<const float> values, std::size_t first, std::size_t stride) {
  double sum = 0, squares = 0;
  std::size_t count = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++count) sum += static_cast<double>(values[i]);
  const double mean = sum / static_cast<double>(count);
  for (std::size_t i = first; i < values.size(); i += stride) {
    const double distance = static_cast<double>(values[i]) - mean;
    squares += distance * distance;
  }
  return {mean, std::sqrt(squares / static_cast<double>(count)) + kLeastDeviation};
}

void normalise_some(std::span<float> values, std::size_t first, std::size_t stride) {
  const auto [mean, deviation] = moments_of(values, first, stride);
  for (std::size_t i = first; i < values.size(); i += stride) {
    values[i] = static_cast<float>((static_cast<double>(values[i]) - mean) / deviation);
  }
}

}  // namespace

std::int64_t AudioFeatures::features() const {
  return mels > 0 ? mels : static_cast<std::int64_t>(transform_of(samples_in(window, *this), 0)) / 2 + 1;
}

std::int64_t AudioFeatures::frames() const {
  const std::int64_t step = samples_in(hop, *this);
  return (samples_in(seconds, *this) + step - 1) / step;
}

void AudioFeatures::check() const {
  constexpr double kMostSeconds = 600, kLongestWindow = 1;
  CONCORD_CHECK(rate >= 1000 && rate <= 192000, ArgumentError,
                "audio: the rate is {}; it is from 1000 to 192000 samples a second", rate);
  CONCORD_CHECK(seconds >= 0 && seconds <= kMostSeconds && (seconds == 0 || samples_in(seconds, *this) > 0),
                ArgumentError, "audio: a sample has {} seconds; at most {}", seconds, kMostSeconds);
  CONCORD_CHECK(window > 0 && window <= kLongestWindow && samples_in(window, *this) >= 2, ArgumentError,
                "audio: a window of {} s; it has from 2 samples to {} s", window, kLongestWindow);
  CONCORD_CHECK(hop > 0 && hop <= kLongestWindow && samples_in(hop, *this) >= 1, ArgumentError,
                "audio: a hop of {} s; it has from 1 sample to {} s", hop, kLongestWindow);
  CONCORD_CHECK(mels >= 0 && mels <= 1024, ArgumentError, "audio: {} mel filters; from 1 to 1024, or 0 for none", mels);
}

std::vector<MelFilter> mel_filters(std::int64_t count, std::int64_t rate, std::size_t transform) {
  const double top = mel_of(static_cast<double>(rate) / 2),
               spacing = static_cast<double>(rate) / static_cast<double>(transform);
  const auto point = [&](std::int64_t i) {
    return hertz_of(top * static_cast<double>(i) / static_cast<double>(count + 1));
  };
  std::vector<MelFilter> filters;
  for (std::int64_t i = 0; i < count; ++i) {
    const double low = point(i), middle = point(i + 1), high = point(i + 2), height = 2 / (high - low);
    MelFilter filter;
    for (std::size_t k = 0; k <= transform / 2; ++k) {
      const double hertz = spacing * static_cast<double>(k);
      const double weight = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first = k;
      filter.weights.push_back(static_cast<float>(weight * height));
    }
    CONCORD_CHECK(!filter.weights.empty(), ArgumentError,
                  "audio: {} mel filters are too many for a window of {} frequencies: filter {} has none", count,
                  transform / 2 + 1, i);
    filters.push_back(std::move(filter));
  }
  return filters;
}

Spectrogram::Spectrogram(const AudioFeatures& features)
    : features_(features),
      window_(samples_in(features.window, features)),
      hop_(samples_in(features.hop, features)),
      fourier_(transform_of(window_, features.mels)) {
  for (std::int64_t i = 0; i < window_; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window_);
    hann_.push_back(static_cast<float>(0.5 - 0.5 * std::cos(angle)));
  }
  if (features.mels > 0) filters_ = mel_filters(features.mels, features.rate, fourier_.size());
}

std::int64_t Spectrogram::frames_of(std::int64_t samples) const { return (samples + hop_ - 1) / hop_; }

void Spectrogram::frame(std::span<const float> sound, std::int64_t index, float* column, Memory& memory) const {
  const auto size = static_cast<std::int64_t>(sound.size());
  const std::int64_t first = index * hop_ - window_ / 2;
  const std::int64_t begin = std::max<std::int64_t>(0, -first), end = std::min(window_, size - first);
  // Where the transform is longer than the window, the place of the window in it does not change the powers.
  std::fill(memory.frame.begin(), memory.frame.end(), 0.0F);
  for (std::int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    memory.frame[at] = hann_[at] * sound[static_cast<std::size_t>(first + i)];
  }
  fourier_.power(memory.frame, memory.power, memory.fourier);
  if (filters_.empty()) {
    for (std::size_t k = 0; k < memory.power.size(); ++k) column[k] = std::log(memory.power[k] + kPowerFloor);
    return;
  }
  for (std::size_t row = 0; row < filters_.size(); ++row) {
    const MelFilter& filter = filters_[row];
    float sum = 0;
    for (std::size_t k = 0; k < filter.weights.size(); ++k) sum += filter.weights[k] * memory.power[filter.first + k];
    column[row] = std::log(sum + kPowerFloor);
  }
}

void Spectrogram::normalise(std::span<float> columns, std::size_t frames) const {
  const std::size_t rows = columns.size() / frames;
  switch (features_.normalisation) {
    case AudioNormalisation::none: return;
    case AudioNormalisation::recording: return normalise_some(columns, 0, 1);
    case AudioNormalisation::features:
      for (std::size_t row = 0; row < rows; ++row) normalise_some(columns, row, rows);
      return;
  }
}

void Spectrogram::operator()(std::span<const float> sound, std::span<float> dst, Memory& memory) const {
  const auto rows = static_cast<std::size_t>(features_.features());
  const std::size_t width = dst.size() / rows;
  const auto frames = static_cast<std::size_t>(frames_of(static_cast<std::int64_t>(sound.size())));
  CONCORD_CHECK(rows * width == dst.size() && frames <= width, ShapeError,
                "a spectrogram of {} × {} numbers was given room for {}", rows, frames, dst.size());
  memory.frame.resize(fourier_.size());
  memory.power.resize(fourier_.size() / 2 + 1);
  memory.columns.resize(frames * rows);
  for (std::size_t t = 0; t < frames; ++t) {
    frame(sound, static_cast<std::int64_t>(t), memory.columns.data() + t * rows, memory);
  }
  if (frames > 0) normalise(memory.columns, frames);
  const float after = features_.normalisation == AudioNormalisation::none ? std::log(kPowerFloor) : 0.0F;
  for (std::size_t row = 0; row < rows; ++row) {
    float* const line = dst.data() + row * width;
    for (std::size_t t = 0; t < frames; ++t) line[t] = memory.columns[t * rows + row];
    std::fill(line + frames, line + width, after);
  }
}

}  // namespace concord::data
