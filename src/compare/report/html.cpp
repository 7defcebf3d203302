// Escapes and number formats.
#include "concord/compare/report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace concord::html {
namespace {

/// The length of the UTF-8 character that `text` begins with; 0 when it begins with none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto is_tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned char first = byte(0);
  if (first < 0x80U) return 1;
  const std::size_t length = first >= 0xC2U && first < 0xE0U ? 2 : (first & 0xF0U) == 0xE0U ? 3 : 0;
  if (length == 0) return first >= 0xF0U && first < 0xF5U && is_tail(1) && is_tail(2) && is_tail(3) ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_tail(i)) return 0;
  }
  return length;
}

std::string special(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
  return "0";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    switch (text[0]) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string with_prefix(double value) {
  if (!std::isfinite(value) || value == 0) return special(value);
  constexpr std::array kPrefixes{"p", "n", "µ", "m", "", "k", "M", "G", "T", "P"};
  constexpr int kNone = 4;
  const int thousands = static_cast<int>(std::floor(std::log10(std::abs(value) * (1 + 1e-12)) / 3));
  const int place = std::clamp(thousands, -kNone, static_cast<int>(kPrefixes.size()) - 1 - kNone);
  const char* const prefix = kPrefixes[static_cast<std::size_t>(place + kNone)];
  return fmt::format("{:.3g}{}{}", value / std::pow(1000.0, place), *prefix == '\0' ? "" : " ", prefix);
}

std::string brief(double value) {
  if (!std::isfinite(value) || value == 0) return special(value);
  const double size = std::abs(value);
  return size >= 99.5 && size < 99999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.2g}", value);
}

}  // namespace concord::html
