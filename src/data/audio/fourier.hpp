// RealFourier: the discrete Fourier transform of real numbers. Internal to the module; spectrogram.cpp uses it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace concord::data {

struct ComplexNumber {
  float re = 0, im = 0;
};

/// X[k] = Σ x[j]·exp(−2πi·jk/n) for k in [0, n/2]. The time is in proportion to n and the sum of the prime factors of
/// n. Several threads use one object, each with its own memory.
class RealFourier {
 public:
  using Memory = std::vector<ComplexNumber>;

  /// `size` is even and positive.
  explicit RealFourier(std::size_t size);

  [[nodiscard]] std::size_t size() const { return 2 * half_; }
  /// Writes |X[k]|²: n/2 + 1 numbers of n.
  void power(std::span<const float> x, std::span<float> power, Memory& memory) const;

 private:
  void stage(std::size_t radix, std::size_t length, std::size_t stride, const ComplexNumber* src,
             ComplexNumber* dst) const;

  std::size_t half_;
  std::vector<std::size_t> radices_;
  std::vector<ComplexNumber> roots_;       // exp(−2πi·k/half) for k in [0, half)
  std::vector<ComplexNumber> real_roots_;  // exp(−2πi·k/size) for k in [0, half)
};

}  // namespace concord::data
