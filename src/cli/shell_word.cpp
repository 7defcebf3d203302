// Quotes for a shell.
#include "concord/cli/shell_word.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

bool is_plain_in_shell(char c) {
  constexpr std::string_view kPlain = "_./:,=+@%-";
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_letter || kPlain.find(c) != std::string_view::npos;
}

bool is_control_character(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7F'; }

std::string escaped_word(std::string_view text) {
  std::string word = "$'";
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    if (length == 0 || is_control_character(rest[0])) {
      word += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest[0]));
    } else {
      if (rest[0] == '\'' || rest[0] == '\\') word += '\\';
      word += rest.substr(0, length);
    }
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return word + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain_in_shell)) return std::string(text);
  if (!is_utf8(text) || std::ranges::any_of(text, is_control_character)) return escaped_word(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace concord::cli
