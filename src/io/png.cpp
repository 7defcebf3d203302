// Pictures in PNG files, and the arrangement of many pictures in one.
#include "concord/io/png.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/io/png_encoder.hpp"

namespace concord::io {
namespace {

constexpr std::uint8_t kGap = 128;

}  // namespace

void write_png(const std::filesystem::path& path, const Tensor& picture) {
  const bool is_picture = picture.dtype() == DType::u8 && picture.shape().rank() == 3 && picture.elements() > 0 &&
                          (picture.shape()[0] == 1 || picture.shape()[0] == 3);
  CONCORD_CHECK(is_picture, ShapeError, "{}: an image must be u8 [1 or 3, rows, columns], got {}", path.string(),
                picture.spec().str());
  const auto channels = static_cast<std::size_t>(picture.shape()[0]);
  const auto pixels = static_cast<std::size_t>(picture.elements()) / channels;
  std::vector<std::uint8_t> interleaved(pixels * channels);
  const auto planes = picture.values<std::uint8_t>();
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < pixels; ++i) interleaved[i * channels + c] = planes[c * pixels + i];
  }
  std::string file;
  try {
    file = encode_png(picture.shape()[1], picture.shape()[2], picture.shape()[0], interleaved);
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}: {}", path.string(), error.what()));
  }
  write_file_atomically(path, std::as_bytes(std::span(file)));
}

Tensor picture_grid(const Tensor& pictures, std::int64_t columns) {
  const bool are_pictures = pictures.dtype() == DType::f32 && pictures.shape().rank() == 4 && pictures.elements() > 0 &&
                            (pictures.shape()[1] == 1 || pictures.shape()[1] == 3);
  CONCORD_CHECK(are_pictures, ShapeError, "images must be f32 [N, 1 or 3, rows, columns], got {}",
                pictures.spec().str());
  CONCORD_CHECK(columns >= 1, ArgumentError, "a grid of images needs at least one column, got {}", columns);
  const std::int64_t n = pictures.shape()[0], channels = pictures.shape()[1];
  const std::int64_t height = pictures.shape()[2], width = pictures.shape()[3];
  const std::int64_t across = std::min(columns, n), down = (n + across - 1) / across;
  const Shape shape{channels, down * (height + 1) - 1, across * (width + 1) - 1};
  Tensor grid(DType::u8, shape);
  const auto to = grid.values<std::uint8_t>();
  std::ranges::fill(to, kGap);
  const auto from = pictures.values<float>();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < height; ++y) {
        const std::int64_t row = c * shape[1] + i / across * (height + 1) + y;
        const std::int64_t first = row * shape[2] + i % across * (width + 1);
        const auto source = from.subspan(static_cast<std::size_t>(((i * channels + c) * height + y) * width));
        for (std::int64_t x = 0; x < width; ++x) {
          const float raw = source[static_cast<std::size_t>(x)];
          const float value = raw > 0 ? std::min(raw, 1.0F) : 0.0F;  // not a number: black
          to[static_cast<std::size_t>(first + x)] = static_cast<std::uint8_t>(std::lround(value * 255));
        }
      }
    }
  }
  return grid;
}

}  // namespace concord::io
