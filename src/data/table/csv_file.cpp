// The first row of a table: a header or not, and whether the names in the options are there.
#include "concord/data/table/csv_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/table/csv_columns.hpp"
#include "concord/data/table/csv_number.hpp"
#include "concord/data/table/csv_text.hpp"

namespace concord::data {
namespace {

constexpr std::int64_t kMostCsvRows = (std::int64_t{1} << 31) - 1;
constexpr std::size_t kShownCsvRows = 10;  // of those that are left out

using CsvNames = std::set<std::string_view>;  // there may be many

CsvNames set_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

/// Which column is read as what. Throws ArgumentError.
std::vector<CsvColumnReader> csv_column_readers(const std::vector<std::string>& names, const CsvOptions& options,
                                                const std::string& file, const CsvSigns& signs) {
  const CsvNames there = set_of(names), labels = set_of(options.labels), targets = set_of(options.targets),
                 categories = set_of(options.categories), numbers = set_of(options.numbers),
                 dropped = set_of(options.drop), others = set_of(options.columns);
  for (const std::string& name : csv_names_in(options)) {
    if (!there.contains(name)) throw ArgumentError(missing_csv_column(file, name, names));
  }
  std::vector<CsvColumnReader> readers;
  readers.reserve(names.size());
  for (const std::string& name : names) {
    const bool is_label = labels.contains(name), is_target = targets.contains(name);
    const bool is_text = categories.contains(name), is_number = numbers.contains(name) || is_target;
    const bool is_dropped = dropped.contains(name);
    CONCORD_CHECK(
        !(is_label && is_target) && !(is_text && is_number) && !(is_dropped && (is_label || is_text || is_number)),
        ArgumentError, "{}: the column '{}' is in two lists that exclude each other", file, name);
    CsvColumnReader::Use use = is_text ? CsvColumnReader::Use::text : CsvColumnReader::Use::open;
    if (is_number) use = CsvColumnReader::Use::number;
    const bool is_named = is_label || is_text || is_number || others.contains(name);
    if (is_dropped || (!options.columns.empty() && !is_named)) use = CsvColumnReader::Use::dropped;
    readers.emplace_back(name, use, is_label || is_target, signs, is_label ? kMostCategories : options.most_categories);
  }
  return readers;
}

/// Row numbers, as pandas and R write them before the first column. They would tell a network the order of the file.
bool counts_csv_rows(const CsvColumn& column) {
  if (column.is_text || column.numbers.empty() || (column.numbers[0] != 0 && column.numbers[0] != 1)) return false;
  for (std::size_t i = 1; i < column.numbers.size(); ++i) {
    if (column.numbers[i] != column.numbers[i - 1] + 1) return false;
  }
  return column.numbers.size() > 1;
}

}  // namespace

std::vector<std::string> csv_names_in(const CsvOptions& options) {
  std::vector<std::string> names;
  for (const auto* list :
       {&options.labels, &options.targets, &options.drop, &options.columns, &options.categories, &options.numbers}) {
    names.insert(names.end(), list->begin(), list->end());
  }
  return names;
}

std::string missing_csv_column(std::string_view file, std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 30;
  const auto nearest = nearest_name(name, names);
  std::vector<std::string> shown;
  for (const std::string& one : names) {
    if (shown.size() < kShown) shown.push_back(printable(one));
  }
  if (names.size() > kShown) shown.push_back(fmt::format("and {} others", names.size() - kShown));
  return fmt::format("{} has no column '{}'.{} It has: {}", file, printable(name),
                     nearest ? fmt::format(" Did you mean '{}'?", printable(*nearest)) : "", fmt::join(shown, ", "));
}

CsvFile::CsvFile(const std::filesystem::path& path, const CsvOptions& options, const std::vector<std::string>& known)
    : path_(printable(path.string())), file_name_(path.filename().string()), text_(read_csv_text(path)) {
  constexpr std::string_view kSeparators = ",;|\t";
  CONCORD_CHECK(options.separator == '\0' || kSeparators.find(options.separator) != std::string_view::npos,
                ArgumentError, "{}: the separator has to be one of , ; | and tab, got '{}'", path_,
                printable({&options.separator, 1}));
  constexpr std::string_view kExcel = "sep=";
  const bool names_separator = text_.starts_with(kExcel) && text_.size() > 5 &&
                               kSeparators.find(text_[4]) != std::string_view::npos &&
                               (text_[5] == '\n' || text_[5] == '\r');
  if (names_separator) {
    begin_ = text_[5] == '\r' && text_.size() > 6 && text_[6] == '\n' ? 7 : 6;
    first_line_ = 2;
  }
  separator_ = options.separator;
  if (separator_ == '\0') {
    separator_ = names_separator ? text_[4] : find_csv_separator(std::string_view(text_).substr(begin_));
  }

  CsvRows rows(text_, begin_, path_, separator_, first_line_);
  CONCORD_CHECK(rows.next(), FormatError, "{}, line {}: the table has no rows", path_, rows.line());
  CONCORD_CHECK(rows.problem().empty(), FormatError, "{}, line {}: {}", path_, rows.line(), rows.problem());
  has_header_ = options.header ? *options.header : is_header(rows.fields(), known);
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < rows.fields().size(); ++i) {
    const std::string_view field = rows.fields()[i];
    names_.emplace_back(has_header_ && !field.empty() ? std::string(field) : fmt::format("{}", i));
    CONCORD_CHECK(is_utf8(names_.back()), FormatError, "{}, line {}: the name '{}' is not in UTF-8. Save the file so",
                  path_, rows.line(), printable(names_.back()));
    CONCORD_CHECK(seen.insert(names_.back()).second, FormatError,
                  "{}, line {}: two columns have the name '{}'. If this row is no header, say header=no", path_,
                  rows.line(), printable(names_.back()));
  }
}

bool CsvFile::is_header(const std::vector<std::string_view>& first_row, const std::vector<std::string>& known) const {
  const auto is_text = [&](std::string_view field) {
    return parse_csv_number(field, separator_ != ',').kind == CsvFieldKind::text;
  };
  const CsvNames names = set_of(known);
  const auto is_known = [&](std::string_view field) { return is_text(field) && names.contains(field); };

  if (std::ranges::any_of(first_row, is_known)) return true;
  return std::ranges::any_of(first_row, is_text) &&
         std::ranges::all_of(first_row, [&](std::string_view field) { return field.empty() || is_text(field); });
}

bool CsvFile::has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

bool CsvFile::is_in_utf8() const { return is_utf8(text_); }

std::size_t CsvFile::rows_to_expect() const {
  constexpr std::size_t kSample = std::size_t{1} << 20;
  const std::string_view sample = std::string_view(text_).substr(0, kSample);
  const auto ends = static_cast<double>(std::ranges::count(sample, '\n') + 1);
  const double rows = 1.05 * ends * static_cast<double>(text_.size()) / static_cast<double>(sample.size());
  return std::min(static_cast<std::size_t>(rows), text_.size() / names_.size()) + 1;  // a row has its separators
}

CsvTable CsvFile::read(const CsvOptions& options, std::vector<CsvBadRow>* bad) const {
  CONCORD_CHECK(options.most_categories > 0 && options.most_categories <= kMostCategories, ArgumentError,
                "{}: most_categories must be from 1 to {}, got {}", path_, kMostCategories, options.most_categories);
  CsvTable table;
  table.name = file_name_;
  table.separator = separator_;
  table.has_header = has_header_;
  CONCORD_CHECK(options.decimal == '\0' || options.decimal == '.' || options.decimal == ',', ArgumentError,
                "{}: the decimal sign has to be . or , and got '{}'", path_, printable({&options.decimal, 1}));
  const CsvSigns signs{options.decimal, options.decimal == '\0' ? separator_ != ',' : options.decimal == ','};
  CsvColumns columns(csv_column_readers(names_, options, path_, signs), signs.has_commas, rows_to_expect());

  const auto refuse = [&](std::int64_t line, const std::string& problem) {
    if (bad != nullptr) return bad->push_back({line, problem});
    CONCORD_CHECK(options.bad == BadRows::skip, FormatError, "{}, line {}: {}", path_, line, problem);
    ++table.skipped_rows;
    if (table.skipped.size() < kShownCsvRows) table.skipped.push_back(fmt::format("line {}: {}", line, problem));
  };
  const auto read_rows = [&] {
    table.lines.clear();
    table.skipped.clear();
    if (bad != nullptr) bad->clear();
    table.skipped_rows = 0;
    CsvRows rows(text_, begin_, path_, separator_, first_line_);
    if (has_header_) rows.next();
    while (rows.next()) {
      const std::string problem = rows.problem().empty() ? columns.take(rows.fields()) : rows.problem();
      if (!problem.empty()) {
        refuse(rows.line(), problem);
        continue;
      }
      columns.keep(rows.line(), path_);
      table.lines.push_back(rows.line());
      CONCORD_CHECK(static_cast<std::int64_t>(table.lines.size()) <= kMostCsvRows, FormatError,
                    "{}, line {}: more than {} rows", path_, rows.line(), kMostCsvRows);
    }
  };
  read_rows();
  while (columns.restart()) read_rows();  // each time fewer columns are of numbers
  table.rows = static_cast<std::int64_t>(table.lines.size());
  CONCORD_CHECK(table.rows > 0 || (bad != nullptr && !bad->empty()), FormatError, "{}: the table has no rows{}", path_,
                table.skipped.empty() ? "" : fmt::format(" but bad ones: {}", fmt::join(table.skipped, "; ")));
  if (table.skipped_rows > 0) {
    log(LogLevel::warning,
        fmt::format("{}: {} left out: {}{}", path_,
                    table.skipped_rows == 1 ? "1 bad row is" : fmt::format("{} bad rows are", table.skipped_rows),
                    fmt::join(table.skipped, "; "),
                    table.skipped_rows > static_cast<std::int64_t>(kShownCsvRows) ? "; …" : ""));
  }
  table.columns = columns.finish(path_);
  if (has_header_ && !table.columns.empty() && table.columns[0].name == "0" &&
      !set_of(csv_names_in(options)).contains("0") && counts_csv_rows(table.columns[0])) {
    log(LogLevel::warning, fmt::format("{}: the first column has no name and counts the rows; it is left out", path_));
    table.columns.erase(table.columns.begin());
  }
  return table;
}

}  // namespace concord::data
