// Tables in text files: the columns as they are in the file, before they are encoded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "concord/cli/data/check_samples.hpp"
#include "concord/cli/data_parts.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/core/check.hpp"
#include "concord/data/table/csv.hpp"

namespace concord::cli {
namespace {

constexpr std::size_t kMostClasses = 1000;

bool is_named(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string role_of(const data::CsvOptions& how, const std::string& name) {
  if (is_named(how.labels, name)) return "label";
  return is_named(how.targets, name) ? "target" : "feature";
}

CheckedColumn describe(const data::CsvColumn& from, std::string part, std::string role) {
  CheckedColumn column{std::move(part), from.name, std::move(role), {}, 0, 0, {}, {}, {}, {}};
  if (from.is_text) {
    column.type = fmt::format("text, {} different", from.values.size());
    column.missing = std::ranges::count(from.indices, -1);
    column.values = static_cast<std::int64_t>(from.indices.size()) - column.missing;
    return column;
  }
  column.type = "number";
  double sum = 0, square = 0, least = 0, largest = 0;
  for (const double value : from.numbers) {
    if (std::isnan(value)) {
      ++column.missing;
      continue;
    }
    least = column.values == 0 ? value : std::min(least, value);
    largest = column.values == 0 ? value : std::max(largest, value);
    ++column.values;
    sum += value;
  }
  if (column.values == 0) return column;
  const auto count = static_cast<double>(column.values);
  column.mean = sum / count;
  for (const double value : from.numbers) {
    if (!std::isnan(value)) square += (value - *column.mean) * (value - *column.mean);
  }
  column.deviation = std::sqrt(square / count);
  column.least = least;
  column.largest = largest;
  return column;
}

/// A field as text; missing: empty.
std::string field_of(const data::CsvColumn& column, std::size_t row) {
  if (!column.is_text) return std::isnan(column.numbers[row]) ? std::string() : fmt::format("{}", column.numbers[row]);
  const std::int32_t index = column.indices[row];
  return index < 0 ? std::string() : column.values[static_cast<std::size_t>(index)];
}

/// Rows are equal if all their fields are, those of labels left out.
Fingerprint content_of(const data::CsvTable& table, const data::CsvOptions& how, std::size_t row) {
  std::string fields;
  for (const data::CsvColumn& column : table.columns) {
    if (role_of(how, column.name) != "feature") continue;
    const std::string field = field_of(column, row);
    fields += fmt::format("{}:{},", field.size(), field);
  }
  return fingerprint_of(std::as_bytes(std::span(fields.data(), fields.size())));
}

struct CheckedTable {
  std::string part;
  data::CsvTable table;
};

std::vector<CheckedTable> read_tables(const DataSpec& spec, const data::CsvOptions& how) {
  std::vector<CheckedTable> tables{{"train", data::read_csv(spec.path, how)}};
  for (const auto& [part, key] : {std::pair("validation", "val"), std::pair("test", "test")}) {
    if (!spec.option(key).empty()) tables.push_back({part, data::read_csv(spec.option(key), how)});
  }
  return tables;
}

/// The classes of the first label, where it has few enough values to be one.
void count_classes(const std::vector<CheckedTable>& tables, const data::CsvOptions& how, CheckReport& report) {
  if (how.labels.empty()) return;
  std::vector<std::map<std::string, std::int64_t>> counts;
  std::vector<std::pair<double, std::string>> names;  // numbers by value, texts by their bytes
  for (const CheckedTable& one : tables) {
    auto& count = counts.emplace_back();
    const data::CsvColumn* const label = one.table.find(how.labels[0]);
    for (std::size_t row = 0; label != nullptr && row < static_cast<std::size_t>(one.table.rows); ++row) {
      const std::string value = field_of(*label, row);
      if (value.empty()) continue;
      if (!is_named(report.class_names, value) && count.find(value) == count.end()) {
        names.emplace_back(label->is_text ? 0 : label->numbers[row], value);
      }
      ++count[value];
      if (names.size() > kMostClasses) return;  // a target
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  for (const auto& [number, name] : names) report.class_names.push_back(name);
  for (std::size_t p = 0; p < tables.size(); ++p) {
    for (const std::string& name : report.class_names) report.parts[p].class_counts.push_back(counts[p][name]);
  }
}

}  // namespace

void check_tables(const DataSpec& spec, CheckReport& report) {
  data::CsvOptions how = csv_options_of(spec);
  how.bad = data::BadRows::skip;
  const std::vector<CheckedTable> tables = read_tables(spec, how);
  std::vector<SeenSample> seen;
  for (std::size_t p = 0; p < tables.size(); ++p) {
    const auto& [part, table] = tables[p];
    report.parts.push_back({part, table.name, table.rows + table.skipped_rows, table.skipped_rows, 0, {}});
    for (const std::string& reason : table.skipped) report.bad.push_back({part, table.name, reason});
    if (const auto more = table.skipped_rows - static_cast<std::int64_t>(table.skipped.size()); more > 0) {
      report.bad.push_back({part, table.name, fmt::format("{} more rows that cannot be read", more)});
    }
    for (const data::CsvColumn& column : table.columns) {
      report.columns.push_back(describe(column, part, role_of(how, column.name)));
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
      const Fingerprint content = content_of(table, how, row);
      seen.push_back({content, content, p, static_cast<std::int64_t>(row)});
    }
  }
  count_classes(tables, how, report);
  const std::string label = !how.labels.empty() ? how.labels[0] : how.targets.empty() ? "" : how.targets[0];
  report.duplicates = duplicates_among(std::move(seen), [&](const SeenSample& sample) {
    const data::CsvTable& table = tables[sample.part].table;
    const auto row = static_cast<std::size_t>(sample.row);
    const data::CsvColumn* const column = table.find(label);
    return DuplicateGroup::Member{sample.part, sample.row, fmt::format("{}: line {}", table.name, table.lines[row]),
                                  column == nullptr ? "" : field_of(*column, row)};
  });
}

}  // namespace concord::cli
