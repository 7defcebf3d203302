// Tables in text files, such as CSV: columns of numbers and of categories as a data set, and the encoding of the
// columns that belongs to a trained model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// What becomes of a row that cannot be read: it has another number of fields than the first row, no label, text in a
/// column of numbers, text that is not in UTF-8, or text behind a closing quote.
enum class BadRows : std::uint8_t {
  fail,  // FormatError with its line
  skip,  // it is left out; a warning counts such rows and names the first ones
};

/// The most different texts of a column.
inline constexpr std::int64_t kMostCategories = std::int64_t{1} << 24;

/// How a table is read. Columns are called by their names in the header, or by their positions "0", "1", … without one.
struct CsvOptions {
  /// Of the fields: , ; | or a tab. 0: the one that splits the first rows into equally many fields; also Excel's
  /// line "sep=;" counts.
  char separator = '\0';
  /// The decimal sign of all numbers, . or ,: the other one groups digits by threes and is passed over. 0: a point, and
  /// where the separator is no comma also a comma; digits are not grouped.
  char decimal = '\0';
  /// Whether the first row has the names. Nothing: it does if it has one of the names below, or if no field in it is a
  /// number.
  std::optional<bool> header = {};
  std::vector<std::string> labels = {};      // classes, or targets by the rule of fit_csv
  std::vector<std::string> targets = {};     // numbers to be predicted
  std::vector<std::string> drop = {};        // columns that are not read
  std::vector<std::string> columns = {};     // if not empty, other columns that no list names are not read
  std::vector<std::string> categories = {};  // columns of text, even if all of it are numbers
  std::vector<std::string> numbers = {};     // columns of numbers: a row with other text is bad
  BadRows bad = BadRows::fail;
  /// A column with more different texts is an error, since each would become an input. At most kMostCategories, which
  /// labels may have.
  std::int64_t most_categories = 1000;
};

/// A column: of numbers if all its fields that are not missing are numbers, else of text.
struct CsvColumn {
  std::string name;
  bool is_text = false;
  std::vector<double> numbers = {};        // of numbers: one for each row, NaN where it is missing
  std::vector<std::int32_t> indices = {};  // of text: one for each row, of a value; -1 where it is missing
  std::vector<std::string> values = {};    // of text: ascending, each in some row
};

struct CsvTable {
  std::string name;  // of the file, for messages
  char separator = ',';
  bool has_header = false;
  std::int64_t rows = 0;
  std::vector<CsvColumn> columns;   // in the order of the file
  std::vector<std::int64_t> lines;  // of the file, from 1, in which each row begins
  std::int64_t skipped_rows = 0;
  std::vector<std::string> skipped;  // the first ten: "line 3: 5 fields, but the first row has 4"
  /// Null if there is no such column.
  [[nodiscard]] const CsvColumn* find(std::string_view name) const;
};

/// Reads a table of RFC 4180: a field in quotes may hold separators, line ends and doubled quotes. Also: a byte order
/// mark of UTF-8, every kind of line end, blank lines, spaces around fields, and files that gzip compressed. Numbers
/// have the decimal sign of the options; without one no column may have both signs. Empty fields, NA, N/A, #N/A, NaN,
/// null, ? and infinities are missing values, in capital letters or not. A first column without a name that only counts
/// the rows is left out with a warning.
///
/// The file and its table have to fit into memory. Throws IoError; OutOfMemory; ArgumentError for a name that is no
/// column or in two lists; FormatError with the line for a bad row, a quote without end, names that occur twice, a
/// column of numbers with a few other texts (name it in `categories`, `numbers` or `drop`), one with both decimal
/// signs, one whose decimal signs may as well group digits ("1,234" beside "987"), and one with too many categories.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// How the columns of a table become numbers. Fitted on rows for training, and kept with the model.
struct CsvEncoding {
  struct Input {
    std::string name;
    bool is_category = false;
    double mean = 0, deviation = 1;        // of numbers: x becomes (x − mean)/deviation
    std::vector<std::string> values = {};  // of categories: ascending
    bool has_missing = false;              // another feature is 1 where the value is missing, else 0
    friend bool operator==(const Input&, const Input&) = default;
  };
  struct Label {
    std::string name;
    std::vector<std::string> classes = {};  // empty: a target
    double mean = 0, deviation = 1;         // of a target, for a network that learns (y − mean)/deviation
    bool is_text = false;                   // of classes: "01" is another one than "1"; else they are numbers
    friend bool operator==(const Label&, const Label&) = default;
  };
  std::vector<Input> inputs;
  std::vector<Label> labels;

  /// The names of the features: "age", "age is missing", "town=Oslo", "town=(other)".
  [[nodiscard]] std::vector<std::string> feature_names() const;
  friend bool operator==(const CsvEncoding&, const CsvEncoding&) = default;
};

/// Makes the encoding from the given rows of a table, or from all.
///
/// Every column that is no label is an input. Of numbers the mean and the deviation (of the rows, not an estimate) of
/// those that are not missing, also of targets, which encode_csv leaves as they are; the deviation of a constant column
/// is 1. A column without any value is left out with a warning.
///
/// A column of `options.labels` has classes if it is of text, or if it has whole numbers of which at most 20 differ, or
/// at most 1,000 and a tenth of the rows; else it is a target, which is logged. Classes are sorted, numbers by value,
/// and come from all rows of the table.
[[nodiscard]] CsvEncoding fit_csv(const CsvTable& table, const CsvOptions& options,
                                  std::span<const std::int32_t> rows = {});

/// Makes a data set with the features f32 [N, features]: numbers standardised, a missing one is the mean; categories
/// one-hot in the order of `values`, then one feature for others, which training never saw. The first column of labels
/// is that of the first label with classes, i32 [N], with class_names; further ones follow; last all targets, f32 [N,
/// targets]. Several columns have the names of their labels, the targets that of the first. A warning counts
/// categories that are others, missing values where training had none, and targets that f32 cannot tell apart.
///
/// If the table lacks a column of labels, the data set has no labels (labels.elements() is 0): it is for prediction
/// only. Throws ArgumentError if it lacks a column of inputs or one is of the other kind; FormatError with the line for
/// a label that is missing or no class of the encoding.
[[nodiscard]] Dataset encode_csv(const CsvTable& table, const CsvEncoding& encoding);

/// Reads what an encoding needs: its inputs, and its labels if the file has all of them; of an encoding without labels,
/// none. Of `options` only separator, decimal, header and bad count. Throws as read_csv.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options,
                                const CsvEncoding& fitted);

/// Reads a file and encodes it: as `fitted` says, or by an encoding that is fitted to it, which needs a label or target
/// in `options`. Throws what read_csv, fit_csv and encode_csv throw.
[[nodiscard]] std::pair<Dataset, CsvEncoding> csv(const std::filesystem::path& path, const CsvOptions& options,
                                                  const CsvEncoding* fitted = nullptr);

/// A table for training and validation.
struct CsvSplit {
  SharedSamples train, held_out;  // selections of one data set
  CsvEncoding encoding;           // fitted on the rows of `train` alone
};
/// Reads a file and holds out `count` random rows, the same as data::split does. Means, deviations and categories come
/// from the other rows alone, so the held-out rows are as new as those of a later file. Throws what read_csv, fit_csv
/// and encode_csv throw, and ArgumentError unless 0 < count < rows.
[[nodiscard]] CsvSplit csv_split(const std::filesystem::path& path, const CsvOptions& options, std::int64_t count,
                                 std::uint64_t seed = 0);

/// JSON, such as for the metadata of a file of weights. The numbers are exact.
[[nodiscard]] std::string to_json(const CsvEncoding& encoding);
/// Throws FormatError, whose message begins with `subject`, for a text that is not what to_json writes: members that
/// are missing, unknown or of another type, names or values that occur twice, deviations that are not positive.
[[nodiscard]] CsvEncoding csv_encoding_from_json(std::string_view text,
                                                 std::string_view subject = "encoding of a table");

}  // namespace data
}  // namespace concord
