// Masks: images whose pixels are the numbers of classes. What a stored mask must be, wherever it is read: for a
// training, by `concord data check` and by `concord data pack`. Internal to the library.
#pragma once

#include <cstdint>
#include <span>

#include "concord/data/image/codec.hpp"
#include "concord/data/image/image.hpp"
#include "concord/data/records/records.hpp"

namespace concord::data {

/// The number in masks of a pixel that has no class.
inline constexpr std::uint8_t kNoClass = 255;

/// The beginning of a mask, for decode_image. Of raw pixels only sizes and channels are set. Throws FormatError for
/// what does not keep the numbers of classes: anything but a PNG of up to 8 bits with a palette or grey levels, or raw
/// pixels of 1 channel.
[[nodiscard]] ImageInfo read_mask_info(const Record& mask);
/// Throws FormatError if a mask has other sizes than its image, which has `height` × `width` pixels.
void check_mask_size(const ImageInfo& mask, std::int64_t height, std::int64_t width);
/// The pixels of a whole mask, in 1 channel.
void decode_mask(const Record& mask, const ImageInfo& info, Image& to);
/// Throws FormatError with the place of the first number that is neither below `classes` nor kNoClass; not for 0
/// classes, which means that their number is not known.
void check_mask_classes(const Image& mask, int classes);
/// The same of the numbers of a part of a mask, without their place; `fill` stands beside the image and is no class
/// either.
void check_cut_mask_classes(std::span<const std::uint8_t> numbers, int classes, std::uint8_t fill);

}  // namespace concord::data
