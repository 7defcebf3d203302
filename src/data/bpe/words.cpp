// GPT-2's pattern by hand: each alternative in its order.
#include "concord/data/bpe/words.hpp"

#include <array>

#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

struct Character {
  CharacterKind kind = CharacterKind::mark;
  std::size_t bytes = 0;
};

constexpr std::array<CharacterKind, 128> ascii_kinds() {
  std::array<CharacterKind, 128> kinds{};
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = is_letter              ? CharacterKind::letter
               : c >= '0' && c <= '9' ? CharacterKind::number
               : is_space             ? CharacterKind::space
                                      : CharacterKind::mark;
  }
  return kinds;
}

Character character_at(std::string_view text, std::size_t at) {
  static constexpr std::array<CharacterKind, 128> kAscii = ascii_kinds();
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 128) return {kAscii[first], 1};
  const std::size_t length = utf8_length(text.substr(at, 4));
  if (length == 0) return {CharacterKind::mark, 1};
  char32_t character = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    character = character << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  }
  return {kind_of_character(character), length};
}

/// The end of the characters of this kind from `at` on.
std::size_t end_of_run(std::string_view text, std::size_t at, CharacterKind kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.bytes;
  }
  return at;
}

std::size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

}  // namespace

std::size_t first_word(std::string_view text) {
  if (text[0] == '\'') {
    if (const std::size_t length = contraction(text); length > 0) return length;
  }
  const std::size_t blank = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Character first = character_at(text, blank);
  if (first.kind != CharacterKind::space) return end_of_run(text, blank + first.bytes, first.kind);
  // Of blanks before a word the last one is left for it.
  std::size_t end = 0, last = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != CharacterKind::space) break;
    last = end;
    end += next.bytes;
  }
  return end == text.size() || last == 0 ? end : last;
}

}  // namespace concord::data
