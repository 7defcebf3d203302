// Resampling along one axis after the other, and pixels apart into planes.
#include "concord/data/image/resample.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/data/image/resample_taps.hpp"
#include "concord/data/image/resample_vectors.hpp"

namespace concord::data {
namespace {

constexpr std::size_t kStrip = kSumBytes;  // rows that are resampled across at once
constexpr std::size_t kTile = 16;          // rows and bytes that are transposed at once

std::size_t whole_strips(std::size_t count) { return (count + kStrip - 1) / kStrip * kStrip; }

// What one resampling leaves to the next of the same thread.
struct ResampleMemory {
  FilterTaps across, down;
  std::vector<std::uint8_t> source, result;  // of a strip: [byte of a row][row of the strip]
  std::vector<std::uint8_t> narrow;          // rows of the source, with the width of the result
  std::vector<std::uint8_t> edge;
};

// Rows of the image from `from` on, of which `rows` exist, become [byte][row].
void gather_strip(const Image& src, std::size_t from, std::size_t rows, std::size_t first_byte, std::size_t bytes,
                  ResampleMemory& memory) {
  const std::size_t stride = src.row_bytes();
  for (std::size_t tile = 0; tile < std::min(kStrip, rows); tile += kTile) {
    const std::uint8_t* const top = src.pixels.data() + (from + tile) * stride + first_byte;
    std::uint8_t* const to = memory.source.data() + tile;
    std::size_t byte = 0;
    if (rows - tile >= kTile) {
      for (; byte + kTile <= bytes; byte += kTile) transpose_16(top + byte, stride, to + byte * kStrip, kStrip);
    }
    for (; byte < bytes; byte += kTile) {  // at the edges of the image
      const std::size_t columns = std::min(kTile, bytes - byte);
      memory.edge.assign(kTile * kTile, 0);
      for (std::size_t r = 0; r < std::min(kTile, rows - tile); ++r) {
        std::copy_n(top + r * stride + byte, columns, &memory.edge[r * kTile]);
      }
      transpose_16(memory.edge.data(), kTile, to + byte * kStrip, kStrip);
    }
  }
}

void check_box(const Image& src, const Box& box, std::int64_t height, std::int64_t width) {
  const bool within = box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 &&
                      box.x + box.width <= static_cast<double>(src.width) &&
                      box.y + box.height <= static_cast<double>(src.height);
  CONCORD_CHECK(within, ArgumentError, "the part {}x{} at {},{} is not within an image of {}x{}", box.width, box.height,
                box.x, box.y, src.width, src.height);
  CONCORD_CHECK(height >= 1 && width >= 1, ArgumentError, "an image cannot become {}x{}", width, height);
}

}  // namespace

void resample(const Image& src, const Box& box, std::int64_t height, std::int64_t width, Image& dst) {
  check_box(src, box, height, width);
  thread_local ResampleMemory memory;
  memory.across.set(box.x, box.width, width);
  memory.down.set(box.y, box.height, height);
  const FilterTaps &across = memory.across, &down = memory.down;

  const auto channels = static_cast<std::size_t>(src.channels);
  const std::size_t first_byte = across.begin() * channels, bytes = (across.end() - across.begin()) * channels;
  const std::size_t row_bytes = static_cast<std::size_t>(width) * channels, row_stride = whole_strips(row_bytes);
  const std::size_t rows = down.end() - down.begin();
  // The second of a pair of weights may be 0 for a pixel further.
  memory.source.resize((whole_strips(bytes) + channels) * kStrip);
  memory.result.resize(row_stride * kStrip);
  memory.narrow.resize((whole_strips(rows) + 1) * row_stride);
  WeightedSum* const sum = weighted_sums().front();

  for (std::size_t y = 0; y < rows; y += kStrip) {
    gather_strip(src, down.begin() + y, rows - y, first_byte, bytes, memory);
    for (std::size_t x = 0; x < across.size(); ++x) {
      const FilterTaps::Pixel taps = across[x];
      sum(&memory.source[(taps.first - across.begin()) * channels * kStrip], channels * kStrip, taps, channels * kStrip,
          &memory.result[x * channels * kStrip]);
    }
    for (std::size_t tile = 0; tile < kStrip; tile += kTile) {
      for (std::size_t byte = 0; byte < row_bytes; byte += kTile) {
        transpose_16(&memory.result[byte * kStrip + tile], kStrip, &memory.narrow[(y + tile) * row_stride + byte],
                     row_stride);
      }
    }
  }

  dst.resize(height, width, src.channels);
  memory.edge.resize(std::max(row_stride, memory.edge.size()));
  for (std::size_t y = 0; y < down.size(); ++y) {
    const FilterTaps::Pixel taps = down[y];
    const std::uint8_t* const from = &memory.narrow[(taps.first - down.begin()) * row_stride];
    // What is written beyond a row is overwritten by the next, if there is one.
    std::uint8_t* const to = dst.pixels.data() + y * row_bytes;
    const bool room = y * row_bytes + row_stride <= dst.pixels.size();
    sum(from, row_stride, taps, row_bytes, room ? to : memory.edge.data());
    if (!room) std::copy_n(memory.edge.data(), row_bytes, to);
  }
}

void resample_nearest(const Image& src, const Box& box, std::int64_t height, std::int64_t width, Image& dst) {
  check_box(src, box, height, width);
  dst.resize(height, width, src.channels);
  thread_local std::vector<std::int64_t> columns;
  columns.resize(static_cast<std::size_t>(width));
  const auto place = [](double begin, double length, std::int64_t i, std::int64_t count, std::int64_t size) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * length / static_cast<double>(count);
    return std::clamp(static_cast<std::int64_t>(std::floor(centre)), std::int64_t{0}, size - 1);
  };
  for (std::int64_t x = 0; x < width; ++x) {
    columns[static_cast<std::size_t>(x)] = place(box.x, box.width, x, width, src.width) * src.channels;
  }
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* const from = src.row(place(box.y, box.height, y, height, src.height));
    std::uint8_t* to = dst.row(y);
    for (const std::int64_t column : columns) to = std::copy_n(from + column, src.channels, to);
  }
}

void to_planes(const Image& src, bool mirror, std::span<std::uint8_t> dst) {
  CONCORD_CHECK(src.channels == 1 || src.channels == 3, ArgumentError, "an image has 1 or 3 channels, not {}",
                src.channels);
  CONCORD_CHECK(dst.size() == src.pixels.size(), ArgumentError, "an image has {} bytes, and its column {}",
                src.pixels.size(), dst.size());
  const auto width = static_cast<std::size_t>(src.width), plane = static_cast<std::size_t>(src.height) * width;
  for (std::int64_t y = 0; y < src.height; ++y) {
    const std::uint8_t* const from = src.row(y);
    std::uint8_t* const to = dst.data() + static_cast<std::size_t>(y) * width;
    if (src.channels == 3) {
      separate_channels(from, width, mirror, to, to + plane, to + 2 * plane);
    } else if (mirror) {
      std::reverse_copy(from, from + width, to);
    } else {
      std::copy_n(from, width, to);
    }
  }
}

}  // namespace concord::data
