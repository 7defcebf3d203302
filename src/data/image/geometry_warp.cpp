// Images that are turned, sheared and moved. Positions are integers in steps of 2^-32 pixel, weights of 2^-11. The
// source is copied to pixels side by side with a border, so that the inner loop neither asks nor jumps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "concord/data/image/geometry.hpp"

namespace concord::data {
namespace {

constexpr int kWarpBits = 32;
constexpr int kWarpWeightBits = 11;
constexpr std::size_t kWarpPixel = 4;  // bytes of a colour, the last unused

/// A number in steps of 2^-32. Sizes are below 2^15 and factors below 2^10, so that sums stay far below 2^63.
std::int64_t warp_position(double x) { return static_cast<std::int64_t>(std::floor(x * 0x1p32 + 0.5)); }

/// The positions in the source of one row of a result, and the pixels of it that lie within the source.
struct WarpRow {
  std::int64_t x = 0, y = 0;            // of the centre of the first pixel
  std::int64_t step_x = 0, step_y = 0;  // to the next pixel
  std::int64_t begin = 0, end = 0;      // of the pixels within; begin <= end
};

/// Narrows [begin, end) to the columns whose position at + column·step lies in [0, size·2^32).
void narrow_to_source(std::int64_t at, std::int64_t step, std::int64_t size, WarpRow& row) {
  const std::int64_t limit = size << kWarpBits;
  if (step == 0) {
    if (at < 0 || at >= limit) row.end = row.begin;
    return;
  }
  // Seen from the other end where positions fall.
  const std::int64_t from = step > 0 ? at : limit - 1 - at, by = std::abs(step);
  const std::int64_t first = from >= 0 ? 0 : (-from + by - 1) / by;
  const std::int64_t last = from >= limit ? 0 : (limit - from + by - 1) / by;
  row.begin = std::min(std::max(row.begin, first), row.end);
  row.end = std::max(row.begin, std::min(row.end, last));
}

WarpRow warp_row(const AffineMap& map, std::int64_t row, std::int64_t height, std::int64_t width) {
  const double y = static_cast<double>(row) + 0.5;
  WarpRow result;
  result.x = warp_position(map.xx * 0.5 + map.xy * y + map.x0);
  result.y = warp_position(map.yx * 0.5 + map.yy * y + map.y0);
  result.step_x = warp_position(map.xx), result.step_y = warp_position(map.yx);
  result.end = width;
  narrow_to_source(result.x, result.step_x, width, result);
  narrow_to_source(result.y, result.step_y, height, result);
  return result;
}

/// The four pixels around a position: where they are, and their weights, whose sum is 2^22.
struct WarpCorners {
  std::int64_t place = 0;  // of the upper left pixel, in bytes
  std::uint32_t upper_left = 0, upper_right = 0, lower_left = 0, lower_right = 0;
};

/// x and y count from the centre of the border's first pixel.
inline WarpCorners warp_corners(std::int64_t x, std::int64_t y, std::int64_t pixel, std::int64_t stride) {
  constexpr int kShift = kWarpBits - kWarpWeightBits;
  constexpr std::uint32_t kOne = 1u << kWarpWeightBits;
  const std::uint32_t right = static_cast<std::uint32_t>(x >> kShift) & (kOne - 1);
  const std::uint32_t down = static_cast<std::uint32_t>(y >> kShift) & (kOne - 1);
  return {(y >> kWarpBits) * stride + (x >> kWarpBits) * pixel, (kOne - right) * (kOne - down), right * (kOne - down),
          (kOne - right) * down, right * down};
}

constexpr std::int64_t kHalfPixel = std::int64_t{1} << (kWarpBits - 1);
constexpr std::uint32_t kWarpHalf = 1u << (2 * kWarpWeightBits - 1);

/// dst[i] for i in [begin, end) from the image `src` with a border of a pixel, whose rows have `stride` bytes.
void warp_grey(const WarpRow& row, const std::uint8_t* src, std::int64_t stride, std::uint8_t* dst) {
  std::int64_t x = row.x + row.begin * row.step_x + kHalfPixel, y = row.y + row.begin * row.step_y + kHalfPixel;
  for (std::int64_t i = row.begin; i < row.end; ++i, x += row.step_x, y += row.step_y) {
    const WarpCorners at = warp_corners(x, y, 1, stride);
    const std::uint8_t* const upper = src + at.place;
    const std::uint8_t* const lower = upper + stride;
    const std::uint32_t sum = upper[0] * at.upper_left + upper[1] * at.upper_right + lower[0] * at.lower_left +
                              lower[1] * at.lower_right;  // at most 255·2^22
    dst[i] = static_cast<std::uint8_t>((sum + kWarpHalf) >> (2 * kWarpWeightBits));
  }
}

/// A pixel's first and third channel in the halves of one number, and its second: sums of 30 bits do not meet.
struct WarpSum {
  std::uint64_t outer = std::uint64_t{kWarpHalf} << 32 | kWarpHalf, inner = kWarpHalf;

  void add(const std::uint8_t* pixel, std::uint32_t weight) {
    const std::uint64_t first_and_third = pixel[0] | std::uint64_t{pixel[2]} << 32;
    outer += first_and_third * weight;
    inner += std::uint64_t{pixel[1]} * weight;
  }
};

void warp_colours(const WarpRow& row, const std::uint8_t* src, std::int64_t stride,
                  const std::array<std::uint8_t*, 3>& dst) {
  std::int64_t x = row.x + row.begin * row.step_x + kHalfPixel, y = row.y + row.begin * row.step_y + kHalfPixel;
  for (std::int64_t i = row.begin; i < row.end; ++i, x += row.step_x, y += row.step_y) {
    const WarpCorners at = warp_corners(x, y, kWarpPixel, stride);
    const std::uint8_t* const upper = src + at.place;
    const std::uint8_t* const lower = upper + stride;
    WarpSum sum;
    sum.add(upper, at.upper_left);
    sum.add(upper + kWarpPixel, at.upper_right);
    sum.add(lower, at.lower_left);
    sum.add(lower + kWarpPixel, at.lower_right);
    dst[0][i] = static_cast<std::uint8_t>(sum.outer >> (2 * kWarpWeightBits));
    dst[1][i] = static_cast<std::uint8_t>(sum.inner >> (2 * kWarpWeightBits));
    dst[2][i] = static_cast<std::uint8_t>(sum.outer >> (2 * kWarpWeightBits + 32));
  }
}

CONCORD_SIMD void join_colours(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                               std::size_t size, std::uint8_t* dst) {
  for (std::size_t i = 0; i < size; ++i) {
    dst[kWarpPixel * i] = red[i], dst[kWarpPixel * i + 1] = green[i];
    dst[kWarpPixel * i + 2] = blue[i], dst[kWarpPixel * i + 3] = 0;
  }
}

/// The image with pixels side by side, of `pixel` bytes, and its edges repeated around it. Returns the bytes of a row.
std::size_t copy_with_border(const Planes& image, std::size_t pixel, std::vector<std::uint8_t>& to) {
  const auto width = static_cast<std::size_t>(image.width), height = static_cast<std::size_t>(image.height);
  const std::size_t stride = (width + 2) * pixel;
  to.resize(std::max(to.size(), (height + 2) * stride));
  for (std::size_t y = 0; y < height; ++y) {
    std::uint8_t* const row = to.data() + (y + 1) * stride;
    const auto line = static_cast<std::int64_t>(y);
    if (pixel == 1) {
      std::memcpy(row + 1, image.row(0, line), width);
    } else {
      join_colours(image.row(0, line), image.row(1, line), image.row(2, line), width, row + pixel);
    }
    std::memcpy(row, row + pixel, pixel);
    std::memcpy(row + stride - pixel, row + stride - 2 * pixel, pixel);
  }
  std::memcpy(to.data(), to.data() + stride, stride);
  std::memcpy(to.data() + (height + 1) * stride, to.data() + height * stride, stride);
  return stride;
}

/// Fills what lies beside the source.
void fill_beside(const WarpRow& row, std::uint8_t value, std::int64_t width, std::uint8_t* dst) {
  std::memset(dst, value, static_cast<std::size_t>(row.begin));
  std::memset(dst + row.end, value, static_cast<std::size_t>(width - row.end));
}

}  // namespace

AffineMap affine_map(std::int64_t height, std::int64_t width, double degrees, double scale, double shear, double right,
                     double down) {
  const SineCosine turn = sine_cosine(degrees), sheared = sine_cosine(shear);
  const double tangent = sheared.sine / sheared.cosine;
  // The inverse of the turn after the shear; its determinant is 1/scale².
  AffineMap map;
  map.xx = (turn.cosine - turn.sine * tangent) / scale;
  map.xy = (turn.sine + turn.cosine * tangent) / scale;
  map.yx = -turn.sine / scale;
  map.yy = turn.cosine / scale;
  const double x = 0.5 * static_cast<double>(width), y = 0.5 * static_cast<double>(height);
  map.x0 = x - map.xx * (x + right) - map.xy * (y + down);
  map.y0 = y - map.yx * (x + right) - map.yy * (y + down);
  return map;
}

void warp(const AffineMap& map, const ImageTransform& transform, const Planes& image, AugmentMemory& memory) {
  const bool is_grey = image.channels == 1;
  const std::size_t stride = copy_with_border(image, is_grey ? 1 : kWarpPixel, memory.source);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const WarpRow row = warp_row(map, y, image.height, image.width);
    if (is_grey) {
      warp_grey(row, memory.source.data(), static_cast<std::int64_t>(stride), image.row(0, y));
    } else {
      warp_colours(row, memory.source.data(), static_cast<std::int64_t>(stride),
                   {image.row(0, y), image.row(1, y), image.row(2, y)});
    }
    for (std::int64_t c = 0; c < image.channels; ++c) fill_beside(row, transform.fill(c), image.width, image.row(c, y));
  }
}

void warp_nearest(const AffineMap& map, std::uint8_t fill, const Planes& mask, AugmentMemory& memory) {
  memory.source.resize(std::max(memory.source.size(), mask.size()));
  std::memcpy(memory.source.data(), mask.pixels, mask.size());
  const Planes source{memory.source.data(), 1, mask.height, mask.width};
  for (std::int64_t y = 0; y < mask.height; ++y) {
    const WarpRow row = warp_row(map, y, mask.height, mask.width);
    for (std::int64_t x = row.begin; x < row.end; ++x) {
      const std::int64_t from_y = (row.y + x * row.step_y) >> kWarpBits;
      mask.row(0, y)[x] = source.row(0, from_y)[(row.x + x * row.step_x) >> kWarpBits];
    }
    fill_beside(row, fill, mask.width, mask.row(0, y));
  }
}

void warp(const AffineMap& map, const ImageTransform& transform, const Planes& image, const Planes& mask,
          AugmentMemory& memory) {
  warp(map, transform, image, memory);
  if (mask.pixels != nullptr) warp_nearest(map, transform.mask_fill, mask, memory);
}

}  // namespace concord::data
