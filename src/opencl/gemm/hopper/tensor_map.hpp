// TensorMap: the description of a tensor for the copy engine (TMA) of NVIDIA's Hopper GPUs, 128 bytes in device memory.
// NVIDIA's driver library creates maps for CUDA only and does not document their format. The format here was derived
// from the output of that library; a check runs on each device before use (matrix_check.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace concord::opencl {

using TensorMap = std::array<std::uint32_t, 32>;

enum class MapNumber : std::uint8_t { f16 = 6, f32 = 7, bf16 = 10 };
[[nodiscard]] std::int64_t bytes_of(MapNumber number);

/// A tensor of up to five dimensions in memory, the inner one first. `strides` are in bytes, multiples of 16, for all
/// dimensions but the inner one. A copy transfers a box of `box` elements from any position, with zeros outside the
/// tensor. The rows of the box have 64 or 128 bytes, and their 16-byte chunks are swizzled as the matrix cores read
/// them. Words 0 and 1, the address, stay 0.
struct MapTensor {
  MapNumber number;
  std::span<const std::int64_t> size, strides;
};
[[nodiscard]] TensorMap box_map(const MapTensor& tensor, std::span<const std::int64_t> box);

/// The pixels of an image (channels, columns, rows, images) that one tap of a convolution meets. A copy transfers
/// `channels` of `places` consecutive positions: along lines of count[0] positions, count[1] lines per image, from
/// image to image. Position 0 of a line lies at `low`, each next one `step` further; zeros outside the image.
struct MapPlaces {
  std::int64_t channels, places;
  std::array<std::int64_t, 2> count, low, step;  // columns, rows
};
/// Whether the fields of a map are wide enough.
[[nodiscard]] bool map_holds(const MapTensor& image, const MapPlaces& places);
[[nodiscard]] TensorMap places_map(const MapTensor& image, const MapPlaces& places);

}  // namespace concord::opencl
