// What the copy engine (TMA) of NVIDIA's Hopper GPUs is told of a tensor: 128 bytes in the device's memory. The driver
// library makes them for CUDA alone and their form is not documented; it was read off what that library writes, and a
// device is checked before it is used (matrix_check.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace concord::opencl {

using TensorMap = std::array<std::uint32_t, 32>;

enum class MapNumber : std::uint8_t { f16 = 6, f32 = 7, bf16 = 10 };
[[nodiscard]] std::int64_t bytes_of(MapNumber number);

/// A tensor of up to five dimensions, the inner one first, in memory: `strides` in bytes, multiples of 16, of all but
/// the inner dimension. A copy brings a box of `box` elements from any place, zeros outside the tensor, its rows of 64
/// or 128 bytes with their 16-byte chunks exchanged as the matrix cores read them. Words 0 and 1, the address, stay 0.
struct MapTensor {
  MapNumber number;
  std::span<const std::int64_t> size, strides;
};
[[nodiscard]] TensorMap box_map(const MapTensor& tensor, std::span<const std::int64_t> box);

/// Of an image (channels, columns, rows, images), what one tap of a convolution meets: a copy brings `channels` of each
/// of `places` places that follow each other along lines of `columns`, in `rows` lines an image, from image to image.
/// Place 0 of a line lies at `low`, each next `step` further; zeros outside the image.
struct MapPlaces {
  std::int64_t channels, places;
  std::array<std::int64_t, 2> count, low, step;  // columns, rows
};
/// Whether the engine's numbers are wide enough.
[[nodiscard]] bool map_holds(const MapTensor& image, const MapPlaces& places);
[[nodiscard]] TensorMap places_map(const MapTensor& image, const MapPlaces& places);

}  // namespace concord::opencl
