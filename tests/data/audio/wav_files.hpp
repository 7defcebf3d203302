// What the tests of recordings share: sounds, and WAV files of all kinds, written byte by byte.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include "concord/data/samples.hpp"
#include "files.hpp"

namespace concord::test {

inline std::vector<float> sine(double hertz, double rate, std::size_t count, double amplitude = 0.5) {
  std::vector<float> sound(count);
  for (std::size_t i = 0; i < count; ++i) {
    sound[i] = static_cast<float>(amplitude * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  }
  return sound;
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return text;
}

struct WavForm {
  int rate = 16000, channels = 1, bits = 16;
  bool is_float = false;
};

/// `sound` has the channels of a sample side by side.
inline std::string wav(const std::vector<float>& sound, const WavForm& form = {}) {
  std::string data;
  for (const float value : sound) {
    if (form.is_float) {
      data += little(std::bit_cast<std::uint32_t>(value), 4);
    } else if (form.bits == 8) {
      data += little(static_cast<std::uint64_t>(std::lround(static_cast<double>(value) * 127) + 128), 1);
    } else {
      const double scale = std::ldexp(1.0, form.bits - 1) - 1;
      data += little(static_cast<std::uint64_t>(std::llround(static_cast<double>(value) * scale)), form.bits / 8);
    }
  }
  const auto unit = static_cast<std::uint64_t>(form.channels * form.bits / 8);
  const auto rate = static_cast<std::uint64_t>(form.rate);
  const std::string format = little(form.is_float ? 3 : 1, 2) + little(static_cast<std::uint64_t>(form.channels), 2) +
                             little(rate, 4) + little(rate * unit, 4) + little(unit, 2) +
                             little(static_cast<std::uint64_t>(form.bits), 2);
  return "RIFF" + little(36 + data.size(), 4) + "WAVEfmt " + little(16, 4) + format + "data" + little(data.size(), 4) +
         data;
}

/// The columns of a sample.
inline std::vector<std::vector<std::byte>> columns_of(const Samples& samples, std::int64_t row,
                                                      const SampleRandom& random = {}) {
  std::vector<std::vector<std::byte>> columns;
  for (const auto& specs : {samples.feature_specs(), samples.label_specs()}) {
    for (const ColumnSpec& spec : specs) columns.emplace_back(spec.spec.bytes());
  }
  std::vector<std::span<std::byte>> memory(columns.begin(), columns.end());
  samples.read(row, memory, random);
  return columns;
}

template <class T>
std::vector<T> numbers_in(const std::vector<std::byte>& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace concord::test
