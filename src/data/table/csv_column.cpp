// Fields to numbers or texts, and what a column is.
#include "concord/data/table/csv_column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {

CsvColumnReader::CsvColumnReader(std::string name, Use use, bool is_needed, bool has_commas, std::int64_t most_values)
    : column_{std::move(name), use == Use::text},
      use_(use),
      given_(use),
      is_needed_(is_needed),
      has_commas_(has_commas),
      most_values_(most_values) {}

std::string CsvColumnReader::take(std::string_view field) {
  if (!is_read()) return {};
  text_ = field;
  if (use_ == Use::text) {
    is_missing_ = is_csv_missing(field);
    is_text_ = true;
  } else {
    const CsvNumber parsed = parse_csv_number(field, has_commas_);
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
    if (decimal_ == '.' && point_line_ == 0) point_line_ = line;
    if (decimal_ == ',' && comma_line_ == 0) comma_line_ = line;
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
  point_line_ = comma_line_ = 0;
}

/// Text that is numbers for the most part is a mistake in the file, unless the user named the column.
void CsvColumnReader::check_text(const std::string& file) const {
  if (given_ != Use::open) return;
  std::int64_t numbers = 0, with_commas = 0, all = 0;
  std::pair<std::int64_t, std::string_view> first{std::numeric_limits<std::int64_t>::max(), {}};
  for (const auto& [text, value] : values_) {
    all += value.count;
    if (parse_csv_number(text, has_commas_).kind == CsvFieldKind::number) {
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
      "{}, line {}: the column '{}' has numbers with a decimal comma, as '{}', in a file that commas separate. "
      "Write a decimal point or separate by another character; or say categories={} or drop={}",
      file, first.first, name, shown_csv_field(first.second), name, name);
}

CsvColumn CsvColumnReader::finish(const std::string& file) {
  CONCORD_CHECK(point_line_ == 0 || comma_line_ == 0, FormatError,
                "{}, line {}: the column '{}' has numbers with a decimal comma, and in line {} with a decimal point",
                file, comma_line_, printable(column_.name), point_line_);
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
