// The graph of image changes, whose values are whole numbers that fp32 holds exactly, so that every device agrees.
#include "concord/train/augmentation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "concord/ops/copy.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::train {
namespace {

/// One number of each sample, [n, 1, 1, 1].
Value number_at(Value numbers, std::size_t place) {
  const auto at = static_cast<std::int64_t>(place);
  return reshape(slice(numbers, 1, at, at + 1), Shape{numbers.shape()[0], 1, 1, 1});
}

/// Crops and mirrors. A pixel from outside takes the fill of its channel.
Value placed(Value images, Value numbers, const data::ImageTransform& transform) {
  const Shape shape = images.shape();
  const std::int64_t n = shape[0], channels = shape[1], height = shape[2], width = shape[3];
  const Scalar y = scalar::input(0) + scalar::input(1) * scalar::coordinate(1);
  const Scalar x = scalar::input(2) + scalar::input(3) * scalar::coordinate(0);
  const auto rows = static_cast<float>(height), columns = static_cast<float>(width);
  const Scalar inside =
      scalar::less_equal(0.0F, y) * scalar::less(y, rows) * scalar::less_equal(0.0F, x) * scalar::less(x, columns);
  const Value place = pointwise("crop_place",
                                {number_at(numbers, data::kTop), number_at(numbers, data::kDown),
                                 number_at(numbers, data::kLeft), number_at(numbers, data::kRight)},
                                scalar::select(inside, y * columns + x, -1.0F), DType::i32, shape);
  const Shape lines{n * channels, height * width};
  const Value moved = reshape(gather_along(reshape(images, lines), reshape(place, lines), 1), shape);
  std::vector<float> fill;
  for (std::int64_t c = 0; c < channels; ++c) fill.push_back(static_cast<float>(transform.fill(c)));
  if (transform.augmentation.crop == 0 || std::ranges::all_of(fill, [](float level) { return level == 0; })) {
    return moved;
  }
  const Scalar channel = scalar::coordinate(2);
  Scalar level = fill[0];
  for (std::size_t c = 1; c < fill.size(); ++c) {
    level = scalar::select(scalar::equal(channel, static_cast<float>(c)), fill[c], level);
  }
  return pointwise("crop_fill", {moved, place},
                   scalar::select(scalar::less(scalar::input(1), 0.0F), level, scalar::input(0)), DType::u8);
}

/// The grey of each pixel, f32 [n, 1, H, W]: ITU-R BT.601 in 16 bits, as PIL.
Value luma_of(Value images) {
  if (images.shape()[1] == 1) return cast(images, DType::f32);
  const auto plane = [&](std::int64_t c) { return slice(images, 1, c, c + 1); };
  const Scalar sum = scalar::input(0) * 19595.0F + scalar::input(1) * 38470.0F + scalar::input(2) * 7471.0F;
  return pointwise("luma", {plane(0), plane(1), plane(2)}, scalar::floor((sum + 32768.0F) * 0x1p-16F));
}

/// The mean of the greys of each image, rounded: [n, 1, 1, 1]. The sum is below 2^24.
Value mean_luma_of(Value luma) {
  const auto size = static_cast<float>(luma.shape()[2] * luma.shape()[3]);
  const Scalar wanted = scalar::input(0) + std::floor(size / 2);
  const Scalar quotient = scalar::floor(wanted / size);  // one too large or too small where the division is rounded
  const Scalar rest = wanted - quotient * size;
  return pointwise("mean_luma", {sum(luma, {2, 3}, true)},
                   quotient + scalar::less_equal(size, rest) - scalar::less(rest, 0.0F));
}

/// base + factor·(value − base), rounded, within 0 … 255, where the factor in steps of 2^-16 is high·4096 + low. In
/// parts that fp32 holds: the product with `high` is split at 16, which is 2^16/4096.
Scalar mixture(const Scalar& value, const Scalar& base, const Scalar& high, const Scalar& low) {
  static_assert(data::kFactorPart == 4096);
  const Scalar product = (value - base) * high;
  const Scalar whole = scalar::floor(product * 0x1p-4F), rest = product - whole * 16.0F;
  const Scalar part = rest * 4096.0F + (value - base) * low + 32768.0F;
  return scalar::min(scalar::max(whole + base + scalar::floor(part * 0x1p-16F), 0.0F), 255.0F);
}

/// One change of the colours, of another kind for each sample.
Value mixed_with(Value images, Value numbers, std::size_t first, const data::ColourJitter& jitter) {
  std::vector<Value> inputs{images, number_at(numbers, first), number_at(numbers, first + 1),
                            number_at(numbers, first + 2)};
  Scalar base = 0.0F;
  const auto mix_with = [&](data::MixedWith with, Value values) {
    base = scalar::select(scalar::equal(scalar::input(1), static_cast<float>(with)),
                          scalar::input(static_cast<int>(inputs.size())), base);
    inputs.push_back(values);
  };
  if (jitter.contrast > 0 || jitter.saturation > 0) {
    const Value luma = luma_of(images);
    if (jitter.contrast > 0) mix_with(data::MixedWith::mean_luma, mean_luma_of(luma));
    if (jitter.saturation > 0) mix_with(data::MixedWith::luma, luma);
  }
  return pointwise("jitter", inputs, mixture(scalar::input(0), base, scalar::input(2), scalar::input(3)), DType::u8);
}

}  // namespace

Value changed(Value images, Value numbers, const data::ImageTransform& transform) {
  const data::ImageAugmentation& augmentation = transform.augmentation;
  const bool moves = augmentation.crop > 0 || augmentation.flip > 0 || augmentation.vertical_flip > 0;
  Value result = moves ? placed(images, numbers, transform) : images;
  for (std::size_t i = 0; i < data::mixtures_of(transform); ++i) {
    result = mixed_with(result, numbers, data::kPlaceNumbers + i * data::kMixtureNumbers, *augmentation.jitter);
  }
  return result;
}

}  // namespace concord::train
