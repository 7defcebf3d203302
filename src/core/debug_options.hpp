// CONCORD_DEBUG: options that help to find a fault in Concord or in a driver, "gemm=tiled,conv=winograd".
// docs/install.md lists them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace concord {

/// The keys that $CONCORD_DEBUG may have.
[[nodiscard]] std::span<const std::string_view> debug_keys();

/// Throws ArgumentError if $CONCORD_DEBUG has an unknown key, or text that is not KEY=VALUE. A value ends at a comma.
void check_debug_options();

/// The value of `key` in $CONCORD_DEBUG. If the key occurs twice, the later value counts. Throws as
/// check_debug_options.
[[nodiscard]] std::optional<std::string> debug_option(std::string_view key);

/// An option that is one of `choices`. Throws ArgumentError for another value.
[[nodiscard]] std::optional<std::string> debug_choice(std::string_view key,
                                                      std::initializer_list<std::string_view> choices);

/// An option that is 0 or 1. Throws ArgumentError for another value.
[[nodiscard]] bool debug_flag(std::string_view key, bool otherwise);

/// An option that is a whole number from `least` to `most`. Throws ArgumentError for another value.
[[nodiscard]] std::optional<std::uint64_t> debug_number(std::string_view key, std::uint64_t least, std::uint64_t most);

}  // namespace concord
