// A font of 5x7 pixels for the characters of ASCII. Used by contact sheets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace concord::cli {

inline constexpr std::size_t kGlyphWidth = 5, kGlyphHeight = 7;

/// The rows of a glyph from top to bottom. The highest of five bits is the pixel on the left.
using Glyph = std::array<std::uint8_t, kGlyphHeight>;

/// A character that is not printable ASCII is a box.
[[nodiscard]] const Glyph& glyph_of(char character);

}  // namespace concord::cli
