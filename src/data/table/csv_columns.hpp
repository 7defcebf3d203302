// All columns of a table while its rows are read. Internal to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/table/csv_column.hpp"

namespace concord::data {

/// A row is taken first and kept only if all of its fields are right.
class CsvColumns {
 public:
  /// `has_commas`: a comma is a decimal sign. Memory for `rows` rows is taken at once.
  CsvColumns(std::vector<CsvColumnReader> readers, bool has_commas, std::size_t rows);

  /// Takes a row, whose fields have to live until `keep`. Returns what is wrong with it, or nothing.
  [[nodiscard]] std::string take(const std::vector<std::string_view>& fields);
  void keep(std::int64_t line, const std::string& file);
  /// Whether the rows have to be read again from the first one on. If so, forgets them.
  [[nodiscard]] bool restart();
  /// The columns that are read. Throws as CsvColumnReader::finish.
  [[nodiscard]] std::vector<CsvColumn> finish(const std::string& file);

 private:
  void flush();
  void sort_out();

  std::vector<CsvColumnReader> readers_;
  bool has_commas_;
  std::vector<std::uint8_t> is_of_numbers_;  // each reader's
  std::vector<std::size_t> of_text_;         // the readers of text
  // The numbers of some rows, which are appended to the columns together: a row of a table touches hundreds of columns,
  // each in memory of its own.
  std::vector<double> block_;
  std::size_t block_rows_, rows_ = 0;
  std::vector<std::size_t> noted_;  // readers of numbers that have to keep something of the row
};

}  // namespace concord::data
