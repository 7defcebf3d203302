// UTF-8: whether a text is such, and its characters. Used where names come from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace concord {

/// The bytes of the character that `text` begins with (Unicode 15, table 3-7); 0 when it begins with none or is empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// For messages: what is no UTF-8, and control characters, as "\\xff"; a long text is cut in its middle.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace concord
