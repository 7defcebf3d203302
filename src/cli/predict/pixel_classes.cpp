// Classes of pixels as shares and colours.
#include "concord/cli/predict/pixel_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "concord/core/check.hpp"

namespace concord::cli {
namespace {

using Colour = std::array<std::uint8_t, 3>;

/// Bits of the number go to the highest bits of red, green and blue in turn, as the palette of PASCAL VOC has them:
/// near numbers have colours that are far apart.
Colour colour_of(std::int32_t number) {
  Colour colour{};
  auto rest = static_cast<std::uint32_t>(number);
  for (unsigned bit = 0; bit < 8; ++bit, rest >>= 3U) {
    for (unsigned c = 0; c < 3; ++c) {
      colour[c] = static_cast<std::uint8_t>(colour[c] | (rest >> c & 1U) << (7U - bit));
    }
  }
  return colour;
}

}  // namespace

std::vector<std::int32_t> pixel_classes(const Tensor& logits, std::int64_t row) {
  const Shape& shape = logits.shape();
  CONCORD_CHECK(shape.rank() == 4, ShapeError, "classes of pixels are in [N, classes, H, W], not {}", shape.str());
  const auto classes = static_cast<std::size_t>(shape[1]), pixels = static_cast<std::size_t>(shape[2] * shape[3]);
  const auto values =
      logits.values<float>().subspan(static_cast<std::size_t>(row) * classes * pixels, classes * pixels);
  std::vector<std::int32_t> best(pixels);
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    std::size_t likeliest = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (values[c * pixels + pixel] > values[likeliest * pixels + pixel]) likeliest = c;
    }
    best[pixel] = static_cast<std::int32_t>(likeliest);
  }
  return best;
}

void add_pixel_shares(const Tensor& logits, const std::vector<Prediction*>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::vector<std::int32_t> classes = pixel_classes(logits, static_cast<std::int64_t>(i));
    std::vector<std::int64_t> counts(static_cast<std::size_t>(logits.shape()[1]));
    for (const std::int32_t number : classes) ++counts[static_cast<std::size_t>(number)];
    to[i]->numbers.clear();
    for (const std::int64_t count : counts) {
      to[i]->numbers.push_back(static_cast<float>(count) / static_cast<float>(classes.size()));
    }
  }
}

std::vector<std::string> names_of_shares(const Tensor& logits) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < logits.shape()[1]; ++i) names.push_back(fmt::format("class {}", i));
  return names;
}

std::vector<std::string> largest_shares(std::span<const float> shares, std::size_t most) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(most, order.size()) && shares[order[i]] > 0; ++i) {
    lines.push_back(fmt::format("class {}: {:.1f} %", order[i], 100 * shares[order[i]]));
  }
  return lines;
}

Tensor painted(const Tensor& picture, std::span<const std::int32_t> classes) {
  const Shape& shape = picture.shape();
  const std::size_t pixels = classes.size();
  CONCORD_CHECK(shape.rank() == 3 && static_cast<std::size_t>(shape[1] * shape[2]) == pixels, ShapeError,
                "a picture {} has other pixels than {} classes", shape.str(), pixels);
  Tensor result(DType::u8, Shape{3, shape[1], shape[2]});
  const auto from = picture.values<std::uint8_t>();
  const auto to = result.values<std::uint8_t>();
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t plane = shape[0] == 3 ? c : 0;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const std::uint8_t own = from[plane * pixels + pixel];
      const std::uint8_t colour = colour_of(classes[pixel])[c];
      to[c * pixels + pixel] = classes[pixel] == 0 ? own : static_cast<std::uint8_t>((own + colour + 1) / 2);
    }
  }
  return result;
}

}  // namespace concord::cli
