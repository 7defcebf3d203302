// SoundResampler: from one number of samples a second to another. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace concord::data {

/// A windowed sinc (Kaiser, β = 9; 34 zero crossings to each side, at 93 % of the lower Nyquist frequency), one set of
/// weights for each phase. Outside the sound there are zeros. Frequencies up to 85 % of the lower Nyquist frequency
/// stay as they are within 10^-4, those above 1.02 times it are damped by 80 dB.
class SoundResampler {
 public:
  /// Throws FormatError if the rates have so small a common divisor that the weights would take over 32 MB.
  SoundResampler(std::int64_t from, std::int64_t to);

  /// How many samples `count` become: those that begin within them.
  [[nodiscard]] std::int64_t output_of(std::int64_t count) const;
  /// How many samples the first `count` of the result depend on.
  [[nodiscard]] std::int64_t input_for(std::int64_t count) const;
  /// Writes the first dst.size() samples.
  void operator()(std::span<const float> src, std::span<float> dst) const;

 private:
  std::int64_t up_, down_;      // sample k of the result is at place k·down/up
  std::int64_t reach_;          // samples to each side
  std::vector<float> weights_;  // [up, 2·reach]
};

/// Those that a data set needs, whose recordings have a few rates. Several threads use one object.
class SoundResamplers {
 public:
  explicit SoundResamplers(std::int64_t to) : to_(to) {}
  [[nodiscard]] std::shared_ptr<const SoundResampler> from(std::int64_t rate);

 private:
  std::int64_t to_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const SoundResampler>> known_;  // by rate
};

}  // namespace concord::data
