// Patterns of tensor names, with the parts that wildcards stand for. Name maps and `--permit` use them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

/// Matches a whole name: '*' stands for any characters, as few as possible, and '#' for a whole number, all digits of
/// it. Returns what each wildcard stands for, or nothing if the name does not match. Takes at most a time of pattern
/// times name.
[[nodiscard]] std::optional<std::vector<std::string_view>> match_name(std::string_view pattern, std::string_view name);

/// Replaces "$1" to "$9" in `text` by these parts. Throws ArgumentError if there are fewer.
[[nodiscard]] std::string with_parts(std::string_view text, const std::vector<std::string_view>& parts);

}  // namespace concord
