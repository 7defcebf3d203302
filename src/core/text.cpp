// Numbers by <charconv>, which knows no locale.
#include "concord/core/text.hpp"

#include <locale.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace concord {
namespace {

/// The locale "C" for numbers; null where the system has no locales of threads.
locale_t neutral_locale() {
  static const locale_t neutral = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return neutral;
}

}  // namespace

std::string hexadecimal(float value) {
  std::array<char, 32> digits{};
  char* const first = digits.data();
  const char* const end = std::to_chars(first, first + digits.size(), std::abs(value), std::chars_format::hex).ptr;
  const std::string text(first, static_cast<std::size_t>(end - first));
  return (std::signbit(value) ? "-" : "") + (std::isfinite(value) ? "0x" + text : text);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

NeutralNumbers::NeutralNumbers() : before_(nullptr) {
  if (const locale_t neutral = neutral_locale()) before_ = ::uselocale(neutral);
}

NeutralNumbers::~NeutralNumbers() {
  if (before_ != nullptr) ::uselocale(static_cast<locale_t>(before_));
}

}  // namespace concord
