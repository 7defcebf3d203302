// Weights by phase, and the sums.
#include "concord/data/audio/sound_resampler.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

constexpr double kCrossings = 34, kPassed = 0.93, kBeta = 9;
constexpr std::int64_t kMostWeights = std::int64_t{1} << 23;

/// The modified Bessel function of order 0.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}

double kaiser(double place) {
  if (std::abs(place) >= 1) return 0;
  static const double scale = bessel_i0(kBeta);
  return bessel_i0(kBeta * std::sqrt(1 - place * place)) / scale;
}

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

}  // namespace

SoundResampler::SoundResampler(std::int64_t from, std::int64_t to) {
  const std::int64_t divisor = std::gcd(from, to);
  up_ = to / divisor;
  down_ = from / divisor;
  const double band = kPassed * static_cast<double>(std::min(from, to)) / static_cast<double>(from);
  reach_ = static_cast<std::int64_t>(std::ceil(kCrossings / band));
  CONCORD_CHECK(up_ * 2 * reach_ <= kMostWeights, FormatError, "{} samples a second cannot be resampled to {}", from,
                to);
  weights_.resize(static_cast<std::size_t>(up_ * 2 * reach_));
  const auto taps = static_cast<std::size_t>(2 * reach_);
  std::vector<double> row(taps);
  for (std::int64_t phase = 0; phase < up_; ++phase) {
    const double place = static_cast<double>(phase) / static_cast<double>(up_);
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const double distance = place + static_cast<double>(reach_ - 1) - static_cast<double>(tap);
      row[tap] = sinc(band * distance) * kaiser(distance * band / kCrossings);
    }
    // Each phase passes a constant as it is, so that none adds a tone of its own.
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    float* const weights = weights_.data() + static_cast<std::size_t>(phase) * taps;
    for (std::size_t tap = 0; tap < taps; ++tap) weights[tap] = static_cast<float>(row[tap] / sum);
  }
}

std::shared_ptr<const SoundResampler> SoundResamplers::from(std::int64_t rate) {
  constexpr std::size_t kMostKnown = 8;
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(rate);
  if (found != known_.end()) return found->second;
  const auto resampler = std::make_shared<const SoundResampler>(rate, to_);
  if (known_.size() == kMostKnown) known_.clear();
  known_.emplace(rate, resampler);
  return resampler;
}

std::int64_t SoundResampler::output_of(std::int64_t count) const { return (count * up_ + down_ - 1) / down_; }

std::int64_t SoundResampler::input_for(std::int64_t count) const {
  return count == 0 ? 0 : (count - 1) * down_ / up_ + reach_ + 1;
}

void SoundResampler::operator()(std::span<const float> src, std::span<float> dst) const {
  const auto size = static_cast<std::int64_t>(src.size());
  for (std::size_t k = 0; k < dst.size(); ++k) {
    const std::int64_t place = static_cast<std::int64_t>(k) * down_, first = place / up_ - reach_ + 1;
    const float* const weights = weights_.data() + place % up_ * 2 * reach_;
    const std::int64_t begin = std::max<std::int64_t>(0, -first), end = std::min(2 * reach_, size - first);
    // Eight sums, so that the processor need not wait for one; always the same ones.
    float sums[8] = {};
    std::int64_t tap = begin;
    for (; tap + 8 <= end; tap += 8) {
      for (std::int64_t i = 0; i < 8; ++i) sums[i] += weights[tap + i] * src[static_cast<std::size_t>(first + tap + i)];
    }
    float rest = 0;
    for (; tap < end; ++tap) rest += weights[tap] * src[static_cast<std::size_t>(first + tap)];
    dst[k] = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
  }
}

}  // namespace concord::data
