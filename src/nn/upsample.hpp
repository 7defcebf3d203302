// Layers that resample or rearrange an image, with PyTorch's names: interpolation, pixel shuffle and channel shuffle.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/resample.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// x (N, C, spatial…) → an image of another size; see `interpolate`.
class Upsample : public Module {
 public:
  explicit Upsample(InterpolateOptions options) : options_(std::move(options)) {}
  [[nodiscard]] Value forward(Value x) override { return interpolate(x, options_); }

 private:
  InterpolateOptions options_;
};

/// A layer that applies a function with one number as its argument.
template <Value (*function)(Value, std::int64_t)>
class Shuffle : public Module {
 public:
  explicit Shuffle(std::int64_t number) : number_(number) {}
  [[nodiscard]] Value forward(Value x) override { return function(x, number_); }

 private:
  std::int64_t number_;
};
using PixelShuffle = Shuffle<pixel_shuffle>;
using PixelUnshuffle = Shuffle<pixel_unshuffle>;
using ChannelShuffle = Shuffle<channel_shuffle>;

}  // namespace nn
}  // namespace concord
