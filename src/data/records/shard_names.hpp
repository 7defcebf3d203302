// Names of shards: "train-{000000..000146}.tar" is 147 of them. Internal to the module.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace concord::data {

inline constexpr std::size_t kMostShards = 100'000;

/// Expands braces as a shell does: {a,b} and {08..11}, also within each other; numbers that begin with a zero keep
/// their width. Other braces, such as "{a}", stay. Throws ArgumentError for a brace without its partner, for an empty
/// text and for more than kMostShards names.
[[nodiscard]] std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace concord::data
