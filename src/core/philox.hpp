// Philox: the counter-based random numbers of cl_kernels/shared/philox.h for the host, bit-equal to those of devices.
// Used by initial values, shuffles, synthetic data and augmentation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace concord {

/// A purpose number from its name (FNV-1a, 32 bits), so that streams of different purposes never meet by accident.
[[nodiscard]] constexpr std::uint32_t philox_purpose(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

/// The stream (seed, purpose, step): 2^66 numbers, each a pure function of its index.
class Philox {
 public:
  Philox(std::uint64_t seed, std::uint32_t purpose, std::uint32_t step = 0)
      : seed_(seed), purpose_(purpose), step_(step) {}

  /// Words 4·index … 4·index + 3 at once.
  [[nodiscard]] std::array<std::uint32_t, 4> block(std::uint64_t index) const;
  /// 32 random bits.
  [[nodiscard]] std::uint32_t word(std::uint64_t index) const;
  /// [0, 1) in steps of 2^-24: the high 24 bits of `word`.
  [[nodiscard]] float uniform(std::uint64_t index) const;

 private:
  std::uint64_t seed_;
  std::uint32_t purpose_, step_;
};

/// Reads a stream from its beginning, for algorithms that use up an unknown number of words.
class PhiloxSequence {
 public:
  explicit PhiloxSequence(const Philox& stream) : stream_(stream) {}
  [[nodiscard]] std::uint32_t next();
  /// Uniform in [0, bound), without bias (Lemire, "Fast Random Integer Generation in an Interval", 2019). bound > 0.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound);

 private:
  Philox stream_;
  std::array<std::uint32_t, 4> block_{};
  std::uint64_t position_ = 0;
};

}  // namespace concord
