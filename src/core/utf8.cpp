// One table of lengths and ranges.
#include "concord/core/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace concord {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto is_in = [&](std::size_t i, unsigned least, unsigned most) {
    return i < text.size() && byte(i) >= least && byte(i) <= most;
  };
  const auto is_tail = [&](std::size_t i) { return is_in(i, 0x80, 0xBF); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return is_tail(1) ? 2 : 0;
  // Neither overlong forms nor surrogates nor what lies beyond U+10FFFF.
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned least = first == 0xE0 ? 0xA0 : 0x80, most = first == 0xED ? 0x9F : 0xBF;
    return is_in(1, least, most) && is_tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned least = first == 0xF0 ? 0x90 : 0x80, most = first == 0xF4 ? 0x8F : 0xBF;
    return is_in(1, least, most) && is_tail(2) && is_tail(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = static_cast<unsigned char>(text[0]) < 0x80 ? 1 : utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {

/// C0, delete and C1, where `character` is one.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

/// Takes the first character of `text`, or a byte that begins none, and adds it to `to`.
template <class IsEscaped>
void move_character(std::string_view& text, std::string& to, const IsEscaped& is_escaped) {
  const std::size_t length = utf8_length(text);
  const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
  if (length == 0 || is_escaped(character)) {
    for (const char byte : character) to += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  } else {
    to += character;
  }
  text.remove_prefix(character.size());
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result;
  const std::size_t all = text.size();
  while (!text.empty()) {
    if (result.size() > kMost && text.size() > kMost) {
      result += fmt::format("... ({} bytes) ...", all);
      text.remove_prefix(text.size() - kMost / 2);
      while (utf8_length(text) == 0 && !text.empty()) text.remove_prefix(1);
      continue;
    }
    move_character(text, result, is_control);
  }
  return result;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  const auto is_escaped = [&](std::string_view character) {
    return is_control(character) && kept.find(character) == std::string_view::npos;
  };
  while (!text.empty()) move_character(text, result, is_escaped);
  return result;
}

std::string in_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) move_character(text, result, [](std::string_view) { return false; });
  return result;
}

}  // namespace concord
