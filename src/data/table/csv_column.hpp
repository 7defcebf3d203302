// One column of a table while its rows are read: what it is shows with its fields. CsvColumns has all of them. Internal
// to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "concord/data/table/csv.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {

/// The decimal signs of a table.
struct CsvSigns {
  char given = '\0';        // by the options; the other one of . and , groups digits
  bool has_commas = false;  // a comma may be a decimal sign
};

class CsvColumnReader {
 public:
  enum class Use : std::uint8_t {
    dropped,
    open,  // numbers until a field is none
    number,
    text,
  };

  /// `is_needed`: no field may be missing.
  CsvColumnReader(std::string name, Use use, bool is_needed, const CsvSigns& signs, std::int64_t most_values);

  /// Takes the field of a row, which has to live until `keep`. Returns what is wrong with it, or nothing.
  [[nodiscard]] std::string take(std::string_view field);
  /// Keeps what was taken: notes the decimal sign of a number, appends text. Throws FormatError for more different
  /// texts than there may be.
  void keep(std::int64_t line, const std::string& file);
  /// Takes memory for so many rows.
  void expect(std::size_t rows);
  /// Appends `count` numbers, each `stride` behind the one before.
  void append(const double* numbers, std::size_t count, std::size_t stride);

  /// The number of the field that was taken; NaN where it is missing.
  [[nodiscard]] double number() const { return number_; }
  [[nodiscard]] bool is_read() const { return use_ != Use::dropped && !is_mixed_; }
  [[nodiscard]] bool is_of_numbers() const { return is_read() && use_ != Use::text; }
  /// Whether `keep` will turn numbers into text.
  [[nodiscard]] bool becomes_text() const { return is_of_numbers() && is_text_; }
  /// Whether the line of a number with this decimal sign matters no more.
  [[nodiscard]] bool has_noted(char decimal) const {
    return decimal == '\0' || decimal == signs_.given || (signs_.given == '\0' && marks_of(decimal).settled_line != 0);
  }
  /// Whether some number can only have this decimal sign.
  [[nodiscard]] bool has_settled(char decimal) const { return is_of_numbers() && marks_of(decimal).settled_line != 0; }
  /// Throws FormatError if the decimal signs may as well group digits. `signs` are those that other columns have for
  /// certain.
  void check_groups(const std::string& file, bool has_points, bool has_commas) const;
  /// Text came after numbers, whose texts are gone: the rows have to be read again.
  [[nodiscard]] bool is_mixed() const { return is_mixed_; }
  /// Forgets all rows; what is mixed is text from now on.
  void restart();
  /// The column, with sorted values. Throws FormatError if it is not clear what it is.
  [[nodiscard]] CsvColumn finish(const std::string& file);

 private:
  struct Value {
    std::int32_t index = 0;
    std::int64_t count = 0, line = 0;  // rows that have it, and the first of them
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  /// Where numbers have a decimal sign.
  struct Marks {
    std::int64_t first_line = 0, settled_line = 0;  // the first with it, and the first in which it groups no digits
    std::int64_t count = 0;                         // numbers with it, until then
    std::string first_text = {};
  };
  [[nodiscard]] const Marks& marks_of(char decimal) const { return decimal == '.' ? points_ : commas_; }
  [[nodiscard]] CsvNumber number_of(std::string_view field) const;
  void keep_text(std::int64_t line, const std::string& file);
  void check_text(const std::string& file) const;

  CsvColumn column_;
  Use use_, given_;
  CsvSigns signs_;
  bool is_needed_, is_mixed_ = false;
  bool has_too_large_ = false;  // a row was bad for a number that a column of text takes
  std::int64_t most_values_;
  Marks points_, commas_;
  std::unordered_map<std::string, Value, Hash, std::equal_to<>> values_;
  // Of the row that was taken.
  std::string_view text_;
  double number_ = 0;
  bool is_missing_ = false, is_text_ = false;
  char decimal_ = '\0';
};

}  // namespace concord::data
