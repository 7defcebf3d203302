// The text of a table as rows of fields (RFC 4180). Internal to the module.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace concord::data {

/// Reads a whole file, plain or compressed. Throws IoError, FormatError if it is no text in UTF-8 or ASCII by its first
/// bytes, and OutOfMemory if it is larger than the memory of the machine.
[[nodiscard]] std::string read_csv_text(const std::filesystem::path& path);

/// The separator that splits the first rows alike.
[[nodiscard]] char find_csv_separator(std::string_view text);

/// Goes through the rows of a text.
class CsvRows {
 public:
  /// The rows from byte `begin` on, which is in line `line` of the file. `text` has to live, and has no zero bytes.
  CsvRows(const std::string& text, std::size_t begin, std::string file, char separator, std::int64_t line = 1);

  /// Goes to the next row that is not blank; false at the end. Throws FormatError for a quote without end.
  bool next();
  /// Its fields, without spaces and quotes around them. They live until the next call.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// The line in which it begins, from 1.
  [[nodiscard]] std::int64_t line() const { return row_line_; }
  /// What is wrong with the row, or empty.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] const char* skip_spaces(const char* at) const;
  const char* read_quoted(const char* at);
  const char* end_line(const char* at);

  const char* at_;
  const char* end_;
  std::string file_;
  char separator_;
  std::array<bool, 256> stops_{};   // the separator, line ends and the zero at the end
  std::array<bool, 256> begins_{};  // of fields that are not simply what is up to a stop: spaces, quotes
  std::int64_t line_, row_line_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // fields with doubled quotes, of the row
  std::string problem_;
};

}  // namespace concord::data
