// A table's file in memory, with its separator and the names of its columns, before its fields are read. Internal to
// the module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/table/csv.hpp"

namespace concord::data {

/// A row that cannot be read.
struct CsvBadRow {
  std::int64_t line = 0;  // in which it begins, from 1
  std::string problem;    // "column 'age': 'old' is no number"
};

class CsvFile {
 public:
  /// `known` are names that a header would have. Throws as read_csv.
  CsvFile(const std::filesystem::path& path, const CsvOptions& options, const std::vector<std::string>& known);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool is_in_utf8() const;
  /// With `bad` it gets all bad rows, which are then neither an error nor warned of, whatever the options say; there
  /// may be no good one.
  [[nodiscard]] CsvTable read(const CsvOptions& options, std::vector<CsvBadRow>* bad = nullptr) const;

 private:
  /// About as many rows as the text has, for taking memory.
  [[nodiscard]] std::size_t rows_to_expect() const;
  [[nodiscard]] bool is_header(const std::vector<std::string_view>& first_row,
                               const std::vector<std::string>& known) const;

  std::string path_, file_name_;  // the path as messages have it
  std::string text_;
  std::size_t begin_ = 0;        // of the rows, in text_
  std::int64_t first_line_ = 1;  // where they begin
  char separator_ = ',';
  bool has_header_ = false;
  std::vector<std::string> names_;
};

/// All names in the options.
[[nodiscard]] std::vector<std::string> csv_names_in(const CsvOptions& options);

/// "F.csv has no column 'aeg'. Did you mean 'age'? It has: age, town".
[[nodiscard]] std::string missing_csv_column(std::string_view file, std::string_view name,
                                             const std::vector<std::string>& names);

}  // namespace concord::data
