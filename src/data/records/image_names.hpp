// Which files of a folder are images. Internal to the module.
#pragma once

#include <string_view>

namespace concord::data {

/// The extensions that is_image_name accepts, for messages.
inline constexpr std::string_view kImageWords = ".jpg, .jpeg, .png, .bmp, .ppm, .pgm and .pnm";

/// Whether the extension is one of an image, in upper or lower case.
[[nodiscard]] bool is_image_name(std::string_view name);

}  // namespace concord::data
