// Fields of tables as numbers, whatever the locale. Internal to the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace concord::data {

enum class CsvFieldKind : std::uint8_t {
  number,
  missing,
  text,
  too_large,  // a number beyond the range of float
};

struct CsvNumber {
  CsvFieldKind kind = CsvFieldKind::text;
  double value = 0;
  char decimal = '\0';  // the sign in it: . or , or none
};

/// Reads a number of few digits, with a decimal sign or without: as a whole number below 2^53 divided by a power of ten
/// it is rounded once, so exactly as std::from_chars would (Clinger, "How to Read Floating Point Numbers Accurately",
/// 1990). False for all others.
[[nodiscard]] inline bool parse_short_csv_number(std::string_view text, bool has_commas, double& value, char& decimal) {
  constexpr double kTens[]{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                           1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
  constexpr std::ptrdiff_t kMostDigits = 18;  // so that they fit into 64 bits
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  const char* const first = at;
  const char* point = nullptr;
  std::uint64_t digits = 0;
  if (end - first > kMostDigits + 1) return false;
  for (; at != end; ++at) {
    const auto digit = static_cast<unsigned>(*at) - static_cast<unsigned>('0');
    if (digit <= 9) {
      digits = digits * 10 + digit;
    } else if (point == nullptr && (*at == '.' || (has_commas && *at == ','))) {
      point = at;
    } else {
      return false;
    }
  }
  const std::ptrdiff_t count = end - first - (point != nullptr ? 1 : 0);
  if (count == 0 || count > kMostDigits || digits > std::uint64_t{1} << 53) return false;
  value = static_cast<double>(digits);
  if (point != nullptr) value /= kTens[end - point - 1];
  if (is_negative) value = -value;
  decimal = point != nullptr ? *point : '\0';
  return true;
}

/// `text` has no spaces around it. A comma is a decimal sign if `has_commas`.
[[nodiscard]] CsvNumber parse_csv_number(std::string_view text, bool has_commas);

/// Whether the only comma or point, `decimal`, of a number may as well group its digits: "1,234", not "0,234", "1,23"
/// or "1234,567".
[[nodiscard]] bool may_be_grouped(std::string_view number, char decimal);
/// A number without the signs that group its digits by threes: "1,234.5" becomes "1234.5". Nothing if `group` stands
/// elsewhere.
[[nodiscard]] std::optional<std::string> without_groups(std::string_view number, char group, char decimal);

/// Above it not every whole number is a double.
inline constexpr double kMostWholeCsvNumber = 0x1p53;
/// What a class is called that the table has as a number.
[[nodiscard]] std::string csv_class_name(double number);
/// Whether a class has such a name: "1", not "01" or "a".
[[nodiscard]] bool is_csv_class_number(std::string_view name);

/// A field for a message: printable, a long one cut with an ellipsis.
[[nodiscard]] std::string shown_csv_field(std::string_view field);

/// Whether it is empty or one of the words for a missing value.
[[nodiscard]] bool is_csv_missing(std::string_view text);

}  // namespace concord::data
