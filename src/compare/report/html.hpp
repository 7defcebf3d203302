// Text for the pages of compare: characters that HTML and SVG keep for themselves, and numbers for people.
#pragma once

#include <string>
#include <string_view>

namespace concord::html {

/// For element content and attribute values; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// Three digits with a prefix: "12.3 G", "450 m"; "0", "∞" and "NaN" for such.
[[nodiscard]] std::string with_prefix(double value);

/// Two digits in the shortest form, whole from 100 to 99999: "0.53", "1.2e-07", "740"; "0", "∞" and "NaN" for such.
[[nodiscard]] std::string brief(double value);

}  // namespace concord::html
