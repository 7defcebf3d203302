// The name that was meant by one that is misspelt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace concord {

/// The name that the fewest letters make of `given`: inserted, deleted, replaced or swapped with their neighbour
/// (Damerau, 1964); none where that takes more than a quarter of the letters, but at least one.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace concord
