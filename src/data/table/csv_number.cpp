// Numbers of tables: the long ones, with exponents, and words for missing values.
#include "concord/data/table/csv_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

constexpr std::array<std::string_view, 8> kMissingWords{"na", "n/a", "#n/a", "nan", "null", "inf", "infinity", "?"};
constexpr std::size_t kLongestMissing = 9;  // "-infinity"

CsvNumber out_of_range(std::string_view text) {
  const std::size_t exponent = text.find_first_of("eE");
  const bool is_tiny = exponent != std::string_view::npos ? exponent + 1 < text.size() && text[exponent + 1] == '-'
                                                          : text.find_first_of("123456789") > text.find('.');
  if (is_tiny) return {CsvFieldKind::number, 0};
  return {CsvFieldKind::too_large};
}

/// Any number, with a point.
CsvNumber parse_any_number(std::string_view text) {
  std::string_view number = text;
  if (!number.empty() && (number[0] == '+' || number[0] == '-')) number.remove_prefix(1);
  if (number.empty() || !(is_digit(number[0]) || number[0] == '.')) return {};
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, value);
  if (rest != end || error == std::errc::invalid_argument) return {};
  CsvNumber parsed =
      error == std::errc::result_out_of_range ? out_of_range(number) : CsvNumber{CsvFieldKind::number, value};
  if (text[0] == '-') parsed.value = -parsed.value;
  return parsed;
}

/// "1,234,567" without a sign: from one to three digits and then three behind each group sign.
bool has_groups_of_three(std::string_view digits, char group) {
  const std::size_t first = std::min(digits.find(group), digits.size());
  if (first == digits.size() || first == 0 || first > 3 || digits[0] == '0') return false;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool is_place = i >= first && (i - first) % 4 == 0;
    if (is_place ? digits[i] != group : !is_digit(digits[i])) return false;
  }
  return (digits.size() - first) % 4 == 0;
}

std::string_view without_sign(std::string_view number) {
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  return number;
}

}  // namespace

bool may_be_grouped(std::string_view number, char decimal) {
  return has_groups_of_three(without_sign(number), decimal);
}

std::optional<std::string> without_groups(std::string_view number, char group, char decimal) {
  const std::string_view digits = without_sign(number);
  if (!has_groups_of_three(digits.substr(0, std::min(digits.find(decimal), digits.size())), group)) return std::nullopt;
  std::string plain(number);
  std::erase(plain, group);
  return plain;
}

std::string csv_class_name(double number) {
  const bool is_whole = number == std::floor(number) && std::abs(number) <= kMostWholeCsvNumber;
  return is_whole ? fmt::format("{}", static_cast<std::int64_t>(number)) : fmt::format("{}", number);
}

bool is_csv_class_number(std::string_view name) {
  const CsvNumber parsed = parse_csv_number(name, false);
  return parsed.kind == CsvFieldKind::number && csv_class_name(parsed.value) == name;
}

std::string shown_csv_field(std::string_view field) {
  constexpr std::size_t kShown = 60;
  if (field.size() <= kShown) return printable(field);
  std::size_t end = 0;
  while (end < kShown) end += std::max<std::size_t>(1, utf8_length(field.substr(end)));
  return printable(field.substr(0, end)) + "…";
}

bool is_csv_missing(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() > kLongestMissing) return false;
  std::array<char, kLongestMissing> small{};
  std::ranges::transform(text, small.begin(), [](char c) { return lower(c); });
  std::string_view word(small.data(), text.size());
  if ((word[0] == '-' || word[0] == '+') && word.size() > 1 && word[1] == 'i') word.remove_prefix(1);
  if (word == "-nan" || word == "+nan") return true;
  return std::ranges::find(kMissingWords, word) != kMissingWords.end();
}

CsvNumber parse_csv_number(std::string_view text, bool has_commas) {
  CsvNumber parsed;
  if (parse_short_csv_number(text, has_commas, parsed.value, parsed.decimal)) {
    parsed.kind = CsvFieldKind::number;
    return parsed;
  }
  const std::size_t comma = has_commas ? text.find(',') : std::string_view::npos;
  if (comma != std::string_view::npos && text.find('.') == std::string_view::npos) {
    std::string with_point(text);
    with_point[comma] = '.';
    parsed = parse_any_number(with_point);
    parsed.decimal = ',';
  } else {
    parsed = parse_any_number(text);
    parsed.decimal = text.find('.') != std::string_view::npos ? '.' : '\0';
  }
  if (parsed.kind == CsvFieldKind::number && std::abs(parsed.value) > std::numeric_limits<float>::max()) {
    parsed.kind = CsvFieldKind::too_large;
  }
  if (parsed.kind == CsvFieldKind::text && is_csv_missing(text)) parsed.kind = CsvFieldKind::missing;
  return parsed;
}

}  // namespace concord::data
