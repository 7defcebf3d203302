// Suggests a name for a misspelt one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace concord {

/// The name that the fewest changes turn `given` into: letters inserted, deleted, replaced or swapped with a neighbour
/// (Damerau, 1964). None if that takes more than a quarter of the letters; one change is always allowed.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace concord
