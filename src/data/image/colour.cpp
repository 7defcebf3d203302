// Colour of u8 planes: mixtures, hue and tables.
#include "concord/data/image/colour.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace concord::data {
namespace {

constexpr int kColourBits = 16;

/// base + factor·(value − base), rounded, within 0 … 255. Factors of at most 101 do not overflow.
inline std::uint8_t mixed_value(std::int32_t value, std::int32_t base, std::int32_t factor) {
  const std::int32_t sum = (base << kColourBits) + (value - base) * factor + (1 << (kColourBits - 1));
  return static_cast<std::uint8_t>(std::clamp(sum >> kColourBits, 0, 255));
}

/// As PIL.
inline std::int32_t colour_luma(std::int32_t red, std::int32_t green, std::int32_t blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

CONCORD_SIMD void mix_with_level(std::uint8_t* values, std::size_t size, std::int32_t level, std::int32_t factor) {
  for (std::size_t i = 0; i < size; ++i) values[i] = mixed_value(values[i], level, factor);
}

CONCORD_SIMD void mix_with_values(std::uint8_t* values, const std::uint8_t* others, std::size_t size,
                                  std::int32_t factor) {
  for (std::size_t i = 0; i < size; ++i) values[i] = mixed_value(values[i], others[i], factor);
}

CONCORD_SIMD void mix_with_luma(std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue, std::size_t size,
                                std::int32_t factor) {
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t grey = colour_luma(red[i], green[i], blue[i]);
    red[i] = mixed_value(red[i], grey, factor);
    green[i] = mixed_value(green[i], grey, factor);
    blue[i] = mixed_value(blue[i], grey, factor);
  }
}

/// At most 2^24 values.
CONCORD_SIMD std::uint32_t sum_of_values(const std::uint8_t* values, std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += values[i];
  return sum;
}

CONCORD_SIMD std::uint32_t sum_of_luma(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                                       std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<std::uint32_t>(colour_luma(red[i], green[i], blue[i]));
  return sum;
}

std::int32_t mean_luma(const Planes& image) {
  constexpr std::size_t kPart = std::size_t{1} << 16;
  std::uint64_t sum = 0;
  const std::size_t size = image.plane_size();
  for (std::size_t i = 0; i < size; i += kPart) {
    const std::size_t part = std::min(kPart, size - i);
    sum += image.channels == 3 ? sum_of_luma(image.plane(0) + i, image.plane(1) + i, image.plane(2) + i, part)
                               : sum_of_values(image.plane(0) + i, part);
  }
  return static_cast<std::int32_t>((sum + size / 2) / size);
}

/// A channel of the colour whose value, chroma and hue·chroma are given: value − max(0, min(k, 4 − k, 1))·chroma, where
/// k = number + 6·hue modulo 6. Numbers but `value` and `chroma` are in steps of 2^-16.
inline std::uint8_t channel_of_hue(std::int32_t value, std::int32_t chroma, std::int32_t hue, std::int32_t number) {
  const std::int32_t whole = chroma << 16;
  std::int32_t k = hue + number * whole;  // in [0, 12·whole)
  k = k >= 6 * whole ? k - 6 * whole : k;
  const std::int32_t part = std::max(std::min(std::min(k, 4 * whole - k), whole), 0);
  return static_cast<std::uint8_t>(value - ((part + 0x8000) >> 16));
}

/// `turn`: sixths of the circle in steps of 2^-16, in [0, 6·2^16].
CONCORD_SIMD void turn_hues(std::uint8_t* reds, std::uint8_t* greens, std::uint8_t* blues, std::size_t size,
                            std::int32_t turn) {
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t red = reds[i], green = greens[i], blue = blues[i];
    const std::int32_t value = std::max(std::max(red, green), blue), least = std::min(std::min(red, green), blue);
    const std::int32_t chroma = value - least;
    // Hue times chroma, which needs no division.
    const std::int32_t of_red = green >= blue ? green - blue : green - blue + 6 * chroma;
    const std::int32_t of_green = blue - red + 2 * chroma, of_blue = red - green + 4 * chroma;
    const std::int32_t hue = red == value ? of_red : green == value ? of_green : of_blue;
    const std::int32_t circle = (6 * chroma) << 16;
    std::int32_t turned = (hue << 16) + turn * chroma;
    turned = turned >= circle ? turned - circle : turned;
    reds[i] = channel_of_hue(value, chroma, turned, 5);
    greens[i] = channel_of_hue(value, chroma, turned, 3);
    blues[i] = channel_of_hue(value, chroma, turned, 1);
  }
}

/// dst[1 … width − 2] of the row between `above` and `below`: (sum of 3×3 + 4·centre)/13, rounded.
CONCORD_SIMD void smooth_row(const std::uint8_t* above, const std::uint8_t* here, const std::uint8_t* below,
                             std::int64_t width, std::uint8_t* dst) {
  for (std::int64_t x = 1; x < width - 1; ++x) {
    const std::uint32_t sum = std::uint32_t{above[x - 1]} + above[x] + above[x + 1] + here[x - 1] + 5u * here[x] +
                              here[x + 1] + below[x - 1] + below[x] + below[x + 1];
    dst[x] = static_cast<std::uint8_t>(((sum + 6) * 5042) >> 16);  // = (sum + 6)/13 for all sums
  }
}

using ColourTable = std::array<std::uint8_t, 256>;
using ColourHistogram = std::array<std::int64_t, 256>;

void look_up_colours(std::uint8_t* values, std::size_t size, const ColourTable& table) {
  for (std::size_t i = 0; i < size; ++i) values[i] = table[values[i]];
}

ColourHistogram colour_histogram(const std::uint8_t* values, std::size_t size) {
  // Four at once: a run of equal values would wait for itself.
  std::array<std::array<std::uint32_t, 256>, 4> parts{};
  for (std::size_t i = 0; i < size; ++i) ++parts[i & 3][values[i]];
  ColourHistogram sum{};
  for (std::size_t v = 0; v < sum.size(); ++v) {
    for (const auto& part : parts) sum[v] += part[v];
  }
  return sum;
}

}  // namespace

std::int32_t colour_steps(double factor) { return static_cast<std::int32_t>(std::floor(factor * 0x1p16 + 0.5)); }

void change_brightness(const Planes& image, double factor) {
  mix_with_level(image.pixels, image.size(), 0, colour_steps(factor));
}

void change_contrast(const Planes& image, double factor) {
  mix_with_level(image.pixels, image.size(), mean_luma(image), colour_steps(factor));
}

void change_saturation(const Planes& image, double factor) {
  if (image.channels != 3) return;
  mix_with_luma(image.plane(0), image.plane(1), image.plane(2), image.plane_size(), colour_steps(factor));
}

void change_sharpness(const Planes& image, double factor, std::vector<std::uint8_t>& memory) {
  const std::int64_t height = image.height, width = image.width;
  if (height < 3 || width < 3) return;
  memory.resize(std::max(memory.size(), image.plane_size()));
  for (std::int64_t c = 0; c < image.channels; ++c) {
    std::memcpy(memory.data(), image.plane(c), image.plane_size());
    for (std::int64_t y = 1; y < height - 1; ++y) {
      smooth_row(image.row(c, y - 1), image.row(c, y), image.row(c, y + 1), width, memory.data() + y * width);
    }
    mix_with_values(image.plane(c), memory.data(), image.plane_size(), colour_steps(factor));
  }
}

void turn_hue(const Planes& image, double part) {
  if (image.channels != 3) return;
  const double sixths = (part - std::floor(part)) * 6;
  turn_hues(image.plane(0), image.plane(1), image.plane(2), image.plane_size(), colour_steps(sixths));
}

void posterize(const Planes& image, int bits) {
  const auto mask = static_cast<std::uint8_t>(0xFF00 >> bits);
  for (std::size_t i = 0; i < image.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(image.pixels[i] & mask);
}

void solarize(const Planes& image, int threshold) {
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::uint8_t value = image.pixels[i];
    image.pixels[i] = value < threshold ? value : static_cast<std::uint8_t>(255 - value);
  }
}

void stretch_contrast(const Planes& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::uint8_t* const values = image.plane(c);
    const auto [least, most] = std::minmax_element(values, values + image.plane_size());
    const int low = *least, range = *most - low;
    if (range == 0) continue;
    ColourTable table{};
    for (int v = low; v <= low + range; ++v) {
      table[static_cast<std::size_t>(v)] = static_cast<std::uint8_t>((v - low) * 255 / range);
    }
    look_up_colours(image.plane(c), image.plane_size(), table);
  }
}

void equalize(const Planes& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const ColourHistogram counts = colour_histogram(image.plane(c), image.plane_size());
    std::size_t last = 255;
    while (last > 0 && counts[last] == 0) --last;
    const std::int64_t step = (static_cast<std::int64_t>(image.plane_size()) - counts[last]) / 255;
    if (step == 0) continue;
    ColourTable table{};
    std::int64_t sum = step / 2;
    for (std::size_t v = 0; v < table.size(); ++v) {
      table[v] = static_cast<std::uint8_t>(std::min<std::int64_t>(sum / step, 255));
      sum += counts[v];
    }
    look_up_colours(image.plane(c), image.plane_size(), table);
  }
}

}  // namespace concord::data
