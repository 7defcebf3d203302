// Rows to columns. Short numbers, of which there are most, never reach the reader of their column.
#include "concord/data/table/csv_columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

constexpr std::size_t kCsvBlockNumbers = std::size_t{1} << 15;  // 256 KiB: stays in the cache

}  // namespace

CsvColumns::CsvColumns(std::vector<CsvColumnReader> readers, bool has_commas, std::size_t rows)
    : readers_(std::move(readers)),
      has_commas_(has_commas),
      block_rows_(std::clamp(kCsvBlockNumbers / readers_.size(), std::size_t{1}, std::size_t{256})) {
  block_.resize(block_rows_ * readers_.size());
  for (CsvColumnReader& reader : readers_) reader.expect(rows);
  sort_out();
}

void CsvColumns::sort_out() {
  is_of_numbers_.clear();
  of_text_.clear();
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    is_of_numbers_.push_back(readers_[i].is_of_numbers() ? 1 : 0);
    if (readers_[i].is_read() && !readers_[i].is_of_numbers()) of_text_.push_back(i);
  }
}

std::string CsvColumns::take(const std::vector<std::string_view>& fields) {
  if (fields.size() != readers_.size()) {
    return fmt::format("{} field{}, but the first row has {}", fields.size(), fields.size() == 1 ? "" : "s",
                       readers_.size());
  }
  noted_.clear();
  double* const row = block_.data() + rows_ * readers_.size();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (is_of_numbers_[i] == 0) continue;
    char decimal = '\0';
    const bool is_short = parse_short_csv_number(fields[i], has_commas_, row[i], decimal);
    if (is_short && (!has_commas_ || readers_[i].has_noted(decimal))) continue;
    if (std::string problem = readers_[i].take(fields[i]); !problem.empty()) return problem;
    row[i] = readers_[i].number();
    noted_.push_back(i);
  }
  for (const std::size_t i : of_text_) {
    if (std::string problem = readers_[i].take(fields[i]); !problem.empty()) return problem;
  }
  return {};
}

void CsvColumns::keep(std::int64_t line, const std::string& file) {
  for (const std::size_t i : of_text_) readers_[i].keep(line, file);
  const bool changes = std::ranges::any_of(noted_, [&](std::size_t i) { return readers_[i].becomes_text(); });
  if (changes) {  // a column that becomes text has to have the rows before this one
    const auto row = block_.begin() + static_cast<std::ptrdiff_t>(rows_ * readers_.size());
    flush();
    std::copy_n(row, readers_.size(), block_.begin());
  }
  for (const std::size_t i : noted_) readers_[i].keep(line, file);
  if (changes) sort_out();
  if (++rows_ == block_rows_) flush();
}

void CsvColumns::flush() {
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    if (is_of_numbers_[i] != 0) readers_[i].append(block_.data() + i, rows_, readers_.size());
  }
  rows_ = 0;
}

bool CsvColumns::restart() {
  if (std::ranges::none_of(readers_, &CsvColumnReader::is_mixed)) return false;
  for (CsvColumnReader& reader : readers_) reader.restart();
  rows_ = 0;
  sort_out();
  return true;
}

std::vector<CsvColumn> CsvColumns::finish(const std::string& file) {
  flush();
  const auto has_settled = [&](char decimal) {
    return std::ranges::any_of(readers_, [&](const CsvColumnReader& reader) { return reader.has_settled(decimal); });
  };
  const bool has_points = has_settled('.'), has_commas = has_settled(',');
  for (const CsvColumnReader& reader : readers_) reader.check_groups(file, has_points, has_commas);
  std::vector<CsvColumn> columns;
  for (CsvColumnReader& reader : readers_) {
    if (reader.is_read()) columns.push_back(reader.finish(file));
  }
  return columns;
}

}  // namespace concord::data
