// Thumbnails and base64.
#include "concord/cli/data/thumbnail.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "concord/data/image/codec.hpp"
#include "concord/data/image/resample.hpp"

namespace concord::cli {
namespace {

constexpr std::int64_t kThumbnailSide = 96;
constexpr int kThumbnailQuality = 80;

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

std::string thumbnail_url(const data::Image& image) {
  const std::int64_t longer = std::max(image.height, image.width);
  if (longer <= kThumbnailSide) return "data:image/png;base64," + base64(data::encode_png(image));
  const double scale = static_cast<double>(kThumbnailSide) / static_cast<double>(longer);
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
  };
  data::Image small;
  data::resample(image, {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)}, side(image.height),
                 side(image.width), small);
  return "data:image/jpeg;base64," + base64(data::encode_jpeg(small, kThumbnailQuality));
}

}  // namespace concord::cli
