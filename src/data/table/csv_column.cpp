// Fields to numbers or texts, and what a column is.
#include "concord/data/table/csv_column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {

CsvColumnReader::CsvColumnReader(std::string name, Use use, bool is_needed, const CsvSigns& signs,
                                 std::int64_t most_values)
    : column_{std::move(name), use == Use::text},
      use_(use),
      given_(use),
      signs_(signs),
      is_needed_(is_needed),
      most_values_(most_values) {}

CsvNumber CsvColumnReader::number_of(std::string_view field) const {
  if (signs_.given == '\0') return parse_csv_number(field, signs_.has_commas);
  const char group = signs_.given == '.' ? ',' : '.';
  if (field.find(group) == std::string_view::npos) return parse_csv_number(field, signs_.has_commas);
  const std::optional<std::string> plain = without_groups(field, group, signs_.given);
  return plain ? parse_csv_number(*plain, signs_.has_commas) : CsvNumber{};
}

std::string CsvColumnReader::take(std::string_view field) {
  if (!is_read()) return {};
  text_ = field;
  if (use_ == Use::text) {
    is_missing_ = is_csv_missing(field);
    is_text_ = true;
  } else {
    const CsvNumber parsed = number_of(field);
    if (parsed.kind == CsvFieldKind::too_large) {
      has_too_large_ = true;
      return fmt::format("column '{}': {} is beyond the range of float", printable(column_.name),
                         shown_csv_field(field));
    }
    is_missing_ = parsed.kind == CsvFieldKind::missing;
    is_text_ = parsed.kind == CsvFieldKind::text;
    number_ = is_missing_ ? std::numeric_limits<double>::quiet_NaN() : parsed.value;
    decimal_ = parsed.decimal;
    if (is_text_ && use_ == Use::number) {
      return fmt::format("column '{}': '{}' is no number", printable(column_.name), shown_csv_field(field));
    }
  }
  if (is_missing_ && is_needed_) return fmt::format("column '{}': the label is missing", printable(column_.name));
  if (is_text_ && !is_missing_ && !is_utf8(field)) {
    return fmt::format("column '{}': '{}' is not in UTF-8 (save the file so)", printable(column_.name),
                       shown_csv_field(field));
  }
  return {};
}

void CsvColumnReader::expect(std::size_t rows) {
  if (is_of_numbers()) column_.numbers.reserve(rows);
  if (use_ == Use::text) column_.indices.reserve(rows);
}

void CsvColumnReader::append(const double* numbers, std::size_t count, std::size_t stride) {
  const std::size_t before = column_.numbers.size();
  column_.numbers.resize(before + count);
  for (std::size_t i = 0; i < count; ++i) column_.numbers[before + i] = numbers[i * stride];
}

void CsvColumnReader::keep(std::int64_t line, const std::string& file) {
  if (!is_read()) return;
  if (use_ == Use::text) return keep_text(line, file);
  if (!is_text_) {
    if (decimal_ == '\0' || signs_.given != '\0') return;
    Marks& marks = decimal_ == '.' ? points_ : commas_;
    if (marks.first_line == 0) marks = {line, 0, 0, std::string(text_)};
    ++marks.count;
    if (marks.settled_line == 0 && !may_be_grouped(text_, decimal_)) marks.settled_line = line;
    return;
  }
  is_mixed_ = has_too_large_ || std::ranges::any_of(column_.numbers, [](double number) { return number == number; });
  if (is_mixed_) return;
  use_ = Use::text;  // all before is missing
  column_.is_text = true;
  column_.indices.assign(column_.numbers.size(), -1);
  column_.numbers.clear();
  keep_text(line, file);
}

void CsvColumnReader::keep_text(std::int64_t line, const std::string& file) {
  if (is_missing_) {
    column_.indices.push_back(-1);
    return;
  }
  auto found = values_.find(text_);
  if (found == values_.end()) {
    if (static_cast<std::int64_t>(values_.size()) == most_values_) {
      check_text(file);
      throw FormatError(fmt::format(
          "{}, line {}: the column '{}' has more than {} different texts, '{}' is the next. "
          "Leave it out (drop={}), or raise most_categories",
          file, line, printable(column_.name), most_values_, shown_csv_field(text_), printable(column_.name)));
    }
    found = values_.emplace(text_, Value{static_cast<std::int32_t>(values_.size()), 0, line}).first;
  }
  ++found->second.count;
  column_.indices.push_back(found->second.index);
}

void CsvColumnReader::restart() {
  if (is_mixed_) use_ = Use::text;
  is_mixed_ = has_too_large_ = false;
  column_.is_text = use_ == Use::text;
  column_.numbers.clear();
  column_.indices.clear();
  values_.clear();
  points_ = commas_ = {};
}

/// Text that is numbers for the most part is a mistake in the file, unless the user named the column.
void CsvColumnReader::check_text(const std::string& file) const {
  if (given_ != Use::open) return;
  std::int64_t numbers = 0, with_commas = 0, all = 0;
  std::pair<std::int64_t, std::string_view> first{std::numeric_limits<std::int64_t>::max(), {}};
  for (const auto& [text, value] : values_) {
    all += value.count;
    if (number_of(text).kind == CsvFieldKind::number) {
      numbers += value.count;
    } else {
      first = std::min(first, {value.line, text});
    }
    if (parse_csv_number(text, true).kind == CsvFieldKind::number) with_commas += value.count;
  }
  const std::string name = printable(column_.name);
  CONCORD_CHECK(
      2 * numbers <= all, FormatError,
      "{}, line {}: '{}' in the column '{}' is no number, but {} of {} fields are. Say numbers={} if this row "
      "is bad, categories={} if all of them are categories, or drop={}",
      file, first.first, shown_csv_field(first.second), name, numbers, all, name, name, name);
  CONCORD_CHECK(
      2 * with_commas <= all, FormatError,
      "{}, line {}: the column '{}' has numbers with a decimal {}, as '{}', in a file {}. Say decimal=comma or "
      "decimal=point, whose other sign groups digits; or categories={} or drop={}",
      file, first.first, name, signs_.given == ',' ? "point" : "comma", shown_csv_field(first.second),
      signs_.given == '\0' ? "that commas separate" : "with another decimal sign", name, name);
}

void CsvColumnReader::check_groups(const std::string& file, bool has_points, bool has_commas) const {
  if (!is_of_numbers() || signs_.given != '\0' || !signs_.has_commas) return;
  const bool is_of_commas = commas_.first_line != 0;
  if (is_of_commas && points_.first_line != 0) return;  // an error of `finish`
  const Marks& marks = is_of_commas ? commas_ : points_;
  if (marks.first_line == 0 || marks.settled_line != 0 || (is_of_commas ? has_commas : has_points)) return;
  // Grouped, all from 1,000 on have a group sign; as decimals, those that have one are below 1,000.
  const auto is_plain_thousand = [](double number) { return std::abs(number) >= 1000; };
  if (std::ranges::any_of(column_.numbers, is_plain_thousand)) return;
  const bool has_other_sign = is_of_commas ? has_points : has_commas;
  const auto numbers = std::ranges::count_if(column_.numbers, [](double number) { return !std::isnan(number); });
  CONCORD_CHECK(!has_other_sign && !(is_of_commas && numbers > marks.count), FormatError,
                "{}, line {}: '{}' in the column '{}' may be a number with a decimal {} or one of thousands. Say "
                "decimal={} or decimal={}; or drop={}",
                file, marks.first_line, shown_csv_field(marks.first_text), printable(column_.name),
                is_of_commas ? "comma" : "point", is_of_commas ? "comma" : "point", is_of_commas ? "point" : "comma",
                printable(column_.name));
}

CsvColumn CsvColumnReader::finish(const std::string& file) {
  CONCORD_CHECK(points_.first_line == 0 || commas_.first_line == 0, FormatError,
                "{}, line {}: the column '{}' has numbers with a decimal comma, and in line {} with a decimal point{}",
                file, commas_.first_line, printable(column_.name), points_.first_line,
                points_.settled_line == 0   ? ". If points group digits, say decimal=comma"
                : commas_.settled_line == 0 ? ". If commas group digits, say decimal=point"
                                            : "");
  if (!column_.is_text) return std::move(column_);
  check_text(file);
  std::vector<std::pair<std::string_view, std::int32_t>> sorted;
  sorted.reserve(values_.size());
  for (const auto& [text, value] : values_) sorted.emplace_back(text, value.index);
  std::ranges::sort(sorted);
  std::vector<std::int32_t> places(sorted.size());
  column_.values.reserve(sorted.size());
  for (const auto& [text, index] : sorted) {
    places[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(column_.values.size());
    column_.values.emplace_back(text);
  }
  for (std::int32_t& index : column_.indices) {
    if (index >= 0) index = places[static_cast<std::size_t>(index)];
  }
  return std::move(column_);
}

}  // namespace concord::data
