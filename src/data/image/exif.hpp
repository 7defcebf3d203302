// EXIF: how a camera was held. Read from the files of JPEG and PNG. Internal to the module.
#pragma once

#include <cstddef>
#include <span>

namespace concord::data {

/// The orientation, 1 … 8, in a TIFF structure as EXIF has it (2.3, 4.5.2 and 4.6.4.A; either byte order). 1 where it
/// is absent, out of range or damaged: a photo is good without it.
[[nodiscard]] int exif_orientation(std::span<const std::byte> tiff);

}  // namespace concord::data
