// Words of a text, as GPT-2's pattern cuts them. Internal to the module; bpe.cpp uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace concord::data {

enum class CharacterKind : std::uint8_t { mark, letter, number, space };

/// By Unicode 16: general categories L and N, and White_Space.
[[nodiscard]] CharacterKind kind_of_character(char32_t character);

/// The bytes of the first word of a text that is not empty.
[[nodiscard]] std::size_t first_word(std::string_view text);

}  // namespace concord::data
