// UTF-8: whether a text is such, and its characters. Used where names come from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace concord {

/// The bytes of the character that `text` begins with (Unicode 15, table 3-7); 0 when it begins with none or is empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// For messages: what is no UTF-8, and control characters (also those of U+0080 to U+009F), as
/// "\\xff"; a long text is cut in its middle.
[[nodiscard]] std::string printable(std::string_view text);

/// The same uncut, and the characters of `kept` as they are: cells of a table, or with "\n" whole messages.
[[nodiscard]] std::string escaped(std::string_view text, std::string_view kept = {});

/// For files: what is no UTF-8 as "\\xff"; all else stays.
[[nodiscard]] std::string in_utf8(std::string_view text);

}  // namespace concord
