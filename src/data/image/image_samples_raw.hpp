// Raw images: pixels that records store as planes, as an Image or, where nothing is resized, as planes again. Internal
// to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "concord/data/image/geometry.hpp"
#include "concord/data/image/image.hpp"
#include "concord/data/image/planes.hpp"
#include "concord/data/records/records.hpp"

namespace concord::data {

/// Throws FormatError unless the image has 1 or 3 channels, at least one pixel, not too many, and `bytes` holds them.
void check_raw(const RawImage& raw, std::size_t bytes);

/// The pixels of `window` with 1 or 3 `channels`: grey is copied to all, colour becomes ITU-R BT.601 luma.
void unpack_raw(std::span<const std::byte> bytes, const RawImage& raw, const Window& window, std::int64_t channels,
                Image& to);

/// Copies the part at (x, y) that has the sizes of `dst`, mirrored left to right if asked. The channels are as many.
void copy_raw(std::span<const std::byte> bytes, const RawImage& raw, std::int64_t x, std::int64_t y, bool mirror,
              const Planes& dst);

}  // namespace concord::data
