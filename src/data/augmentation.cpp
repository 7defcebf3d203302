// Augmentation: pictures moved as bytes, whatever the type of their elements.
#include "concord/data/augmentation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/data/pixel_moves.hpp"

namespace concord::data {
namespace {

/// A sample's bytes as channels of rows of pixels.
struct Picture {
  Picture(std::span<std::byte> data, const TensorSpec& spec) : bytes(data), pixel(size_of(spec.dtype)) {
    CONCORD_CHECK(spec.shape.rank() == 3, ShapeError, "augmentation: images must be [channels, rows, columns], got {}",
                  spec.str());
    channels = static_cast<std::size_t>(spec.shape[0]);
    rows = static_cast<std::size_t>(spec.shape[1]);
    columns = static_cast<std::size_t>(spec.shape[2]);
  }
  [[nodiscard]] std::byte* at(std::size_t channel, std::size_t row, std::size_t column = 0) const {
    return bytes.data() + ((channel * rows + row) * columns + column) * pixel;
  }

  std::span<std::byte> bytes;
  std::size_t pixel, channels, rows, columns;
};

/// Random numbers of one sample, those of another purpose or epoch being independent.
PhiloxSequence numbers(std::uint64_t seed, std::string_view purpose, std::int32_t row, std::uint32_t epoch) {
  const std::uint64_t own = seed + (static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) << 32);
  return PhiloxSequence(Philox(own, philox_purpose(purpose), epoch));
}

bool happens(PhiloxSequence& random, double p) { return static_cast<double>(random.next()) * 0x1p-32 < p; }

void check_probability(const char* augmentation, double p) {
  CONCORD_CHECK(p >= 0 && p <= 1, ArgumentError, "{}: the probability {} is outside [0, 1]", augmentation, p);
}

/// dst[i] = src[i + shift] of `count` pixels, zeros where there are none. The ranges may overlap.
void move_pixels(std::byte* dst, const std::byte* src, std::size_t count, std::int64_t shift, std::size_t pixel) {
  const auto size = static_cast<std::int64_t>(count);
  const std::int64_t first = std::clamp<std::int64_t>(-shift, 0, size);
  const std::int64_t end = std::clamp<std::int64_t>(size - shift, 0, size);
  const auto bytes = [&](std::int64_t pixels) { return static_cast<std::size_t>(pixels) * pixel; };
  if (end > first) std::memmove(dst + bytes(first), src + bytes(first + shift), bytes(end - first));
  std::memset(dst, 0, bytes(first));
  std::memset(dst + bytes(std::max(end, first)), 0, bytes(size - std::max(end, first)));
}

/// Row r becomes row r + down moved by `right`; rows are taken in an order that reads each before it is written over.
void shift_channel(const Picture& picture, std::size_t channel, std::int64_t down, std::int64_t right) {
  const auto rows = static_cast<std::int64_t>(picture.rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = down >= 0 ? i : rows - 1 - i;
    std::byte* dst = picture.at(channel, static_cast<std::size_t>(row));
    const std::int64_t from = row + down;
    if (from < 0 || from >= rows) {
      std::memset(dst, 0, picture.columns * picture.pixel);
    } else {
      move_pixels(dst, picture.at(channel, static_cast<std::size_t>(from)), picture.columns, right, picture.pixel);
    }
  }
}

}  // namespace

bool RandomFlip::is_flipped(std::int32_t row, std::uint32_t epoch) const {
  PhiloxSequence random = numbers(seed, "data.flip", row, epoch);
  return happens(random, p);
}

void RandomFlip::operator()(std::span<std::byte> features, const SampleInfo& sample) const {
  if (!is_flipped(sample.row, sample.epoch)) return;
  const Picture picture(features, sample.spec);
  for (std::size_t c = 0; c < picture.channels; ++c) {
    for (std::size_t y = 0; y < picture.rows; ++y) {
      for (std::size_t x = 0; x < picture.columns / 2; ++x) {
        std::byte* left = picture.at(c, y, x);
        std::swap_ranges(left, left + picture.pixel, picture.at(c, y, picture.columns - 1 - x));
      }
    }
  }
}

RandomMove::Place RandomMove::place(std::int32_t row, std::uint32_t epoch) const {
  PhiloxSequence random = numbers(seed, "data.crop", row, epoch);
  const auto places = static_cast<std::uint32_t>(2 * padding + 1);
  Place place;
  place.down = static_cast<std::int64_t>(random.below(places)) - padding;
  place.right = static_cast<std::int64_t>(random.below(places)) - padding;
  return place;
}

void RandomMove::operator()(std::span<std::byte> features, const SampleInfo& sample) const {
  const Place to = place(sample.row, sample.epoch);
  const Picture picture(features, sample.spec);
  for (std::size_t c = 0; c < picture.channels; ++c) shift_channel(picture, c, to.down, to.right);
}

void InOrder::operator()(std::span<std::byte> features, const SampleInfo& sample) const {
  for (const Augmentation& one : all) one(features, sample);
}

Augmentation random_horizontal_flip(std::uint64_t seed, double p) {
  check_probability("random_horizontal_flip", p);
  return RandomFlip{seed, p};
}

Augmentation random_crop(std::uint64_t seed, std::int64_t padding) {
  CONCORD_CHECK(padding >= 0 && padding < 1 << 20, ArgumentError, "random_crop: the padding {} is outside [0, 2^20)",
                padding);
  return RandomMove{seed, padding};
}

Augmentation random_erasing(std::uint64_t seed, double p) {
  check_probability("random_erasing", p);
  return [=](std::span<std::byte> features, const SampleInfo& sample) {
    PhiloxSequence random = numbers(seed, "data.erase", sample.row, sample.epoch);
    if (!happens(random, p)) return;
    const Picture picture(features, sample.spec);
    const auto side = [&](std::size_t length) {  // a quarter to a half
      const auto least = static_cast<std::uint32_t>(length / 4);
      return least + random.below(static_cast<std::uint32_t>(length / 2) - least + 1);
    };
    const auto place = [&](std::size_t length, std::uint32_t part) {
      return random.below(static_cast<std::uint32_t>(length) - part + 1);
    };
    const std::uint32_t height = side(picture.rows), width = side(picture.columns);
    const std::uint32_t top = place(picture.rows, height), left = place(picture.columns, width);
    for (std::size_t c = 0; c < picture.channels; ++c) {
      for (std::uint32_t y = top; y < top + height; ++y) std::memset(picture.at(c, y, left), 0, width * picture.pixel);
    }
  };
}

Augmentation in_order(std::vector<Augmentation> augmentations) { return InOrder{std::move(augmentations)}; }

}  // namespace concord::data
