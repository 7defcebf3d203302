// Spectrogram: sound to the features of AudioFeatures. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "concord/data/audio.hpp"
#include "concord/data/audio/fourier.hpp"

namespace concord::data {

/// A filter of the mel scale: its weights for some frequencies of the transform.
struct MelFilter {
  std::size_t first = 0;
  std::vector<float> weights;
};

/// Slaney's triangles between points that are equally far apart on the mel scale, each of area 1.
[[nodiscard]] std::vector<MelFilter> mel_filters(std::int64_t count, std::int64_t rate, std::size_t transform);

/// Several threads use one object, each with its own memory.
class Spectrogram {
 public:
  struct Memory {
    RealFourier::Memory fourier;
    std::vector<float> frame, power, columns;
  };

  explicit Spectrogram(const AudioFeatures& features);

  /// How many frames `samples` have: frame t is there if sample t·hop is.
  [[nodiscard]] std::int64_t frames_of(std::int64_t samples) const;
  /// Writes features × frames numbers, those of a frequency side by side. `sound` has at most as many samples as the
  /// frames; zeros follow.
  void operator()(std::span<const float> sound, std::span<float> dst, Memory& memory) const;

 private:
  void frame(std::span<const float> sound, std::int64_t index, float* column, Memory& memory) const;
  void normalise(std::span<float> columns, std::size_t frames) const;

  AudioFeatures features_;
  std::int64_t window_, hop_;
  RealFourier fourier_;
  std::vector<float> hann_;
  std::vector<MelFilter> filters_;
};

}  // namespace concord::data
