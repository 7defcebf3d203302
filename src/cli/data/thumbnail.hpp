// Small pictures inside a page. Used by `concord data check --html`.
#pragma once

#include <string>
#include <string_view>

#include "concord/data/image/image.hpp"

namespace concord::cli {

/// RFC 4648, section 4.
[[nodiscard]] std::string base64(std::string_view bytes);

/// An image with sides of at most 96 pixels, as "data:image/jpeg;base64,…"; a smaller one as PNG.
[[nodiscard]] std::string thumbnail_url(const data::Image& image);

}  // namespace concord::cli
