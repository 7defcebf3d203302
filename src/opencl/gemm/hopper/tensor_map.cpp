// The words of a tensor map: kind, rank, type and swizzle; strides; sizes; box and steps; corners of the places.
#include "concord/opencl/gemm/hopper/tensor_map.hpp"

#include <cstddef>

namespace concord::opencl {
namespace {

std::uint32_t word(std::int64_t value) { return static_cast<std::uint32_t>(value); }

/// The common beginning of both kinds of map, for boxes with rows of this many bytes.
TensorMap begin_of(const MapTensor& tensor, bool of_places, std::int64_t row_bytes) {
  constexpr std::uint32_t kPromote128 = 2;  // bytes brought to the second-level cache at once
  const bool is_wide = row_bytes > 64;
  TensorMap map{};
  map[2] = (of_places ? 1U : 0U) | word(std::ssize(tensor.size) - 1) << 4U |
           static_cast<std::uint32_t>(tensor.number) << 7U | (is_wide ? 3U : 2U) << 13U | kPromote128 << 17U;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) map[3 + i] = word(tensor.strides[i] / 16);
  for (std::size_t i = 0; i < tensor.size.size(); ++i) map[8 + i] = word(tensor.size[i] - 1);
  map[18] = is_wide ? 0x400U : 0x200U;
  return map;
}

/// The last column or row at which a copy may begin, counted from the image's end.
std::int64_t high_corner(const MapTensor& image, const MapPlaces& places, std::size_t axis) {
  return (places.count[axis] - 1) * places.step[axis] + places.low[axis] + 1 - image.size[1 + axis];
}

}  // namespace

std::int64_t bytes_of(MapNumber number) { return number == MapNumber::f32 ? 4 : 2; }

TensorMap box_map(const MapTensor& tensor, std::span<const std::int64_t> box) {
  const std::int64_t row_bytes = box[0] * bytes_of(tensor.number);
  TensorMap map = begin_of(tensor, false, row_bytes);
  map[13] = word(box[0] - 1) << 24U;
  std::int64_t bytes = row_bytes;
  for (std::size_t i = 1; i < box.size(); ++i) {
    map[14] |= word(box[i] - 1) << (8 * (i - 1));
    bytes *= box[i];
  }
  map[16] = word(bytes);
  return map;
}

bool map_holds(const MapTensor& image, const MapPlaces& places) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t low = places.low[axis], high = high_corner(image, places, axis);
    if (places.step[axis] < 1 || places.step[axis] > 8) return false;
    if (low < -128 || low > 127 || high < -128 || high > 127) return false;
  }
  return true;
}

TensorMap places_map(const MapTensor& image, const MapPlaces& places) {
  const std::int64_t row_bytes = places.channels * bytes_of(image.number);
  TensorMap map = begin_of(image, true, row_bytes);
  map[13] = word(places.step[0] - 1) << 3U | word(places.step[1] - 1) << 6U | word(places.channels - 1) << 24U;
  const auto corner = [](std::int64_t value) { return word(value) & 0xffU; };
  map[14] = corner(places.low[0]) | corner(places.low[1]) << 8U | corner(high_corner(image, places, 0)) << 16U |
            corner(high_corner(image, places, 1)) << 24U;
  map[15] = word(places.places - 1);
  map[16] = word(row_bytes * places.places);
  return map;
}

}  // namespace concord::opencl
