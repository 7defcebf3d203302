// The encoding of a table's columns: fitting it, and the features and labels that it makes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/table/csv.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

using CsvInput = CsvEncoding::Input;

// The rule for whole numbers as labels.
constexpr std::size_t kSurelyClasses = 20, kMostWholeClasses = 1000;
constexpr std::int64_t kRowsOfAClass = 10;

bool is_csv_label(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Checks what was found as the column `name`.
const CsvColumn& checked_csv_column(const CsvTable& table, const CsvColumn* column, const std::string& name,
                                    bool is_text) {
  CONCORD_CHECK(column != nullptr, ArgumentError, "{} has no column '{}', which the encoding needs", table.name,
                printable(name));
  CONCORD_CHECK(column->is_text == is_text, ArgumentError,
                "{}: the column '{}' is of {}, but the encoding has it as one of {}. Read it as such: categories= or "
                "numbers=",
                table.name, printable(name), column->is_text ? "text" : "numbers", is_text ? "text" : "numbers");
  return *column;
}

/// Nothing if the column has no values.
bool fit_numbers(const CsvColumn& column, std::span<const std::int32_t> rows, CsvInput& input) {
  double sum = 0, squares = 0, largest = 0;
  std::int64_t count = 0;
  for (const std::int32_t row : rows) {
    const double number = column.numbers[static_cast<std::size_t>(row)];
    if (std::isnan(number)) continue;
    sum += number;
    largest = std::max(largest, std::abs(number));
    ++count;
  }
  input.has_missing = count < static_cast<std::int64_t>(rows.size());
  if (count == 0) return false;
  input.mean = sum / static_cast<double>(count);
  for (const std::int32_t row : rows) {
    const double number = column.numbers[static_cast<std::size_t>(row)];
    if (!std::isnan(number)) squares += (number - input.mean) * (number - input.mean);
  }
  constexpr double kRounding = 1e-13;  // a constant column differs from its mean by no more
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  input.deviation = deviation > kRounding * largest ? deviation : 1;
  return true;
}

bool fit_categories(const CsvColumn& column, std::span<const std::int32_t> rows, CsvInput& input) {
  std::vector<bool> is_there(column.values.size());
  for (const std::int32_t row : rows) {
    const std::int32_t index = column.indices[static_cast<std::size_t>(row)];
    if (index >= 0) {
      is_there[static_cast<std::size_t>(index)] = true;
    } else {
      input.has_missing = true;
    }
  }
  for (std::size_t i = 0; i < is_there.size(); ++i) {
    if (is_there[i]) input.values.push_back(column.values[i]);
  }
  return !input.values.empty();
}

/// The classes of a column of labels; none if it is a target.
std::vector<std::string> csv_classes_of(const CsvColumn& column) {
  if (column.is_text) return column.values;
  std::set<double> values;
  for (const double number : column.numbers) {
    if (number != std::floor(number) || std::abs(number) > kMostWholeCsvNumber) return {};
    values.insert(number);
    if (values.size() > kMostWholeClasses) return {};
  }
  const auto rows = static_cast<std::int64_t>(column.numbers.size());
  if (values.size() > kSurelyClasses && static_cast<std::int64_t>(values.size()) * kRowsOfAClass > rows) return {};
  std::vector<std::string> classes;
  for (const double value : values) classes.push_back(csv_class_name(value));
  return classes;
}

/// The columns of the features that one input becomes.
std::int64_t csv_width_of(const CsvInput& input) {
  const auto values = input.is_category ? static_cast<std::int64_t>(input.values.size()) + 1 : 1;
  return values + (input.has_missing ? 1 : 0);
}

/// For each value of the column its place among those of the encoding; -1 for one that is not there.
std::vector<std::int32_t> places_among(const std::vector<std::string>& values, const std::vector<std::string>& known) {
  std::vector<std::int32_t> places;
  for (const std::string& value : values) {
    const auto found = std::ranges::lower_bound(known, value);
    places.push_back(found != known.end() && *found == value ? static_cast<std::int32_t>(found - known.begin()) : -1);
  }
  return places;
}

/// One input and its columns of the features, from `at` on.
class CsvInputEncoder {
 public:
  CsvInputEncoder(const CsvInput& input, const CsvColumn& column, std::size_t at)
      : input_(input), column_(column), at_(at), places_(places_among(column.values, input.values)) {}

  /// Writes the features of row `row`, which are 0.
  void encode(std::size_t row, std::span<float> features) {
    const auto to = features.subspan(at_);
    bool is_missing = false;
    if (!input_.is_category) {
      const double number = column_.numbers[row];
      is_missing = std::isnan(number);
      if (!is_missing) to[0] = static_cast<float>((number - input_.mean) / input_.deviation);
      if (is_missing && input_.has_missing) to[1] = 1;
    } else {
      const std::int32_t index = column_.indices[row];
      is_missing = index < 0;
      const std::int32_t place = is_missing ? -1 : places_[static_cast<std::size_t>(index)];
      const std::size_t other = input_.values.size();
      const bool is_known_as_missing = is_missing && input_.has_missing;
      to[place >= 0 ? static_cast<std::size_t>(place) : other + (is_known_as_missing ? 1 : 0)] = 1;
      others_ += place < 0 && !is_missing ? 1 : 0;
    }
    missing_ += is_missing && !input_.has_missing ? 1 : 0;
  }

  /// Warns of values for which the encoding has no feature.
  void warn(const CsvTable& table) const {
    if (others_ > 0) {
      log(LogLevel::warning,
          fmt::format("{}: the column '{}' has {} that training never saw; {} as other", table.name,
                      printable(input_.name), values(others_), others_ == 1 ? "it counts" : "they count"));
    }
    if (missing_ > 0) {
      log(LogLevel::warning,
          fmt::format("{}: the column '{}' lacks {}, none in training; {} as {}", table.name, printable(input_.name),
                      values(missing_), missing_ == 1 ? "it counts" : "they count",
                      input_.is_category ? "other" : "the mean"));
    }
  }

 private:
  static std::string values(std::int64_t count) { return fmt::format("{} value{}", count, count == 1 ? "" : "s"); }

  const CsvInput& input_;
  const CsvColumn& column_;
  std::size_t at_;
  std::vector<std::int32_t> places_;
  std::int64_t others_ = 0, missing_ = 0;  // rows
};

Tensor encode_classes(const CsvTable& table, const CsvEncoding::Label& label) {
  const CsvColumn& column = *table.find(label.name);
  std::vector<std::string> texts = column.values;  // of numbers those that are there
  std::vector<double> numbers;
  if (!column.is_text) {
    numbers = column.numbers;
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const double number : numbers) texts.push_back(csv_class_name(number));
  }
  // Classes of numbers are not sorted as texts.
  std::vector<std::int32_t> places;
  std::vector<std::pair<std::string_view, std::int32_t>> classes;
  for (const std::string& name : label.classes) classes.emplace_back(name, static_cast<std::int32_t>(classes.size()));
  std::ranges::sort(classes);
  for (const std::string& text : texts) {
    const auto at = std::ranges::lower_bound(classes, std::string_view(text), {},
                                             &std::pair<std::string_view, std::int32_t>::first);
    places.push_back(at != classes.end() && at->first == text ? at->second : -1);
  }
  Tensor tensor = Tensor::unset({DType::i32, Shape{table.rows}});
  const auto to = tensor.values<std::int32_t>();
  for (std::size_t row = 0; row < to.size(); ++row) {
    const bool is_missing = column.is_text ? column.indices[row] < 0 : std::isnan(column.numbers[row]);
    CONCORD_CHECK(!is_missing, FormatError, "{}, line {}: the label '{}' is missing", table.name, table.lines[row],
                  printable(label.name));
    const auto index =
        column.is_text
            ? static_cast<std::size_t>(column.indices[row])
            : static_cast<std::size_t>(std::ranges::lower_bound(numbers, column.numbers[row]) - numbers.begin());
    to[row] = places[index];
    CONCORD_CHECK(to[row] >= 0, FormatError,
                  "{}, line {}: the label '{}' is '{}', none of the {} classes of the encoding", table.name,
                  table.lines[row], printable(label.name), shown_csv_field(texts[index]), label.classes.size());
  }
  return tensor;
}

/// Warns where neighbouring numbers of f32 are no small part of the deviation.
void warn_of_lost_digits(const CsvTable& table, const CsvEncoding::Label& target) {
  constexpr double kSmallPart = 1e-3;
  const auto mean = static_cast<float>(std::abs(target.mean));
  const double step =
      static_cast<double>(std::nextafter(mean, std::numeric_limits<float>::infinity())) - static_cast<double>(mean);
  if (step <= kSmallPart * target.deviation) return;
  log(LogLevel::warning,
      fmt::format("{}: the target '{}' loses digits: its mean is {:.6g} and its deviation {:.3g}, and neighbouring "
                  "numbers of 32 bits are {:.3g} apart there. Subtract a number close to the mean from the column",
                  table.name, printable(target.name), target.mean, target.deviation, step));
}

Tensor encode_targets(const CsvTable& table, const std::vector<const CsvEncoding::Label*>& targets) {
  const auto width = targets.size();
  Tensor tensor = Tensor::unset({DType::f32, Shape{table.rows, static_cast<std::int64_t>(width)}});
  const auto to = tensor.values<float>();
  for (std::size_t i = 0; i < width; ++i) {
    const CsvColumn& column = checked_csv_column(table, table.find(targets[i]->name), targets[i]->name, false);
    for (std::size_t row = 0; row < column.numbers.size(); ++row) {
      CONCORD_CHECK(!std::isnan(column.numbers[row]), FormatError, "{}, line {}: the target '{}' is missing",
                    table.name, table.lines[row], printable(targets[i]->name));
      to[row * width + i] = static_cast<float>(column.numbers[row]);
    }
    warn_of_lost_digits(table, *targets[i]);
  }
  return tensor;
}

std::vector<Column> encode_labels(const CsvTable& table, const CsvEncoding& encoding) {
  std::vector<Column> columns;
  std::vector<const CsvEncoding::Label*> targets;
  for (const CsvEncoding::Label& label : encoding.labels) {
    if (table.find(label.name) == nullptr) return {};
    if (label.classes.empty()) {
      targets.push_back(&label);
    } else {
      columns.push_back({label.name, encode_classes(table, label), static_cast<int>(label.classes.size())});
    }
  }
  if (!targets.empty()) columns.push_back({targets[0]->name, encode_targets(table, targets)});
  return columns;
}

}  // namespace

std::vector<std::string> CsvEncoding::feature_names() const {
  std::vector<std::string> names;
  for (const Input& input : inputs) {
    if (!input.is_category) names.push_back(input.name);
    for (const std::string& value : input.values) names.push_back(fmt::format("{}={}", input.name, value));
    if (input.is_category) names.push_back(input.name + "=(other)");
    if (input.has_missing) names.push_back(input.name + " is missing");
  }
  return names;
}

CsvEncoding fit_csv(const CsvTable& table, const CsvOptions& options, std::span<const std::int32_t> rows) {
  std::vector<std::int32_t> all;
  if (rows.empty()) {
    all.resize(static_cast<std::size_t>(table.rows));
    std::iota(all.begin(), all.end(), 0);
    rows = all;
  }
  for (const std::int32_t row : rows) {
    CONCORD_CHECK(row >= 0 && row < table.rows, ArgumentError, "{}: row {} is outside its {} rows", table.name, row,
                  table.rows);
  }
  CsvEncoding encoding;
  for (const auto* names : {&options.labels, &options.targets}) {
    for (const std::string& name : *names) {
      const CsvColumn* const column = table.find(name);
      CONCORD_CHECK(column != nullptr, ArgumentError, "{} has no column '{}'", table.name, printable(name));
      const bool is_label = names == &options.labels;
      CsvEncoding::Label label{name, is_label ? csv_classes_of(*column) : std::vector<std::string>{}};
      CONCORD_CHECK(!column->is_text || is_label, ArgumentError, "{}: the target '{}' has to be a column of numbers",
                    table.name, printable(name));
      label.is_text = column->is_text;
      if (is_label && label.classes.empty()) {
        log(LogLevel::info, fmt::format("{}: the label '{}' has numbers and no classes, so it is a target", table.name,
                                        printable(name)));
      }
      CsvInput numbers{name, false};
      if (label.classes.empty() && fit_numbers(*column, rows, numbers)) {
        label.mean = numbers.mean;
        label.deviation = numbers.deviation;
      }
      encoding.labels.push_back(std::move(label));
    }
  }
  for (const CsvColumn& column : table.columns) {
    if (is_csv_label(options.labels, column.name) || is_csv_label(options.targets, column.name)) continue;
    CsvInput input{column.name, column.is_text};
    if (column.is_text ? fit_categories(column, rows, input) : fit_numbers(column, rows, input)) {
      encoding.inputs.push_back(std::move(input));
    } else {
      log(LogLevel::warning, fmt::format("{}: the column '{}' has no values for training; it is left out", table.name,
                                         printable(column.name)));
    }
  }
  CONCORD_CHECK(!encoding.inputs.empty(), ArgumentError, "{}: besides labels there are no columns with values",
                table.name);
  return encoding;
}

Dataset encode_csv(const CsvTable& table, const CsvEncoding& encoding) {
  CONCORD_CHECK(table.rows > 0 && !encoding.inputs.empty(), ArgumentError,
                "{}: a data set needs rows and inputs, got {} and {}", table.name, table.rows, encoding.inputs.size());
  std::int64_t width = 0;
  for (const CsvInput& input : encoding.inputs) width += csv_width_of(input);
  Dataset dataset;
  dataset.name = table.name;
  dataset.features = Tensor(DType::f32, Shape{table.rows, width});
  std::vector<CsvInputEncoder> encoders;
  std::int64_t at = 0;
  std::map<std::string_view, const CsvColumn*> columns;  // there may be many
  for (const CsvColumn& column : table.columns) columns.emplace(column.name, &column);
  for (const CsvInput& input : encoding.inputs) {
    const auto found = columns.find(input.name);
    const CsvColumn& column =
        checked_csv_column(table, found == columns.end() ? nullptr : found->second, input.name, input.is_category);
    encoders.emplace_back(input, column, static_cast<std::size_t>(at));
    at += csv_width_of(input);
  }
  const auto features = dataset.features.values<float>();
  const auto size = static_cast<std::size_t>(width);
  // Several rows of one column at a time, and few enough that their features stay in the cache.
  constexpr std::size_t kRows = 64;
  for (std::size_t first = 0; first * size < features.size(); first += kRows) {
    const std::size_t end = std::min(first + kRows, features.size() / size);
    for (CsvInputEncoder& encoder : encoders) {
      for (std::size_t row = first; row < end; ++row) encoder.encode(row, features.subspan(row * size, size));
    }
  }
  for (const CsvInputEncoder& encoder : encoders) encoder.warn(table);
  std::vector<Column> labels = encode_labels(table, encoding);
  if (labels.empty()) return dataset;
  dataset.labels = labels[0].values;
  dataset.classes = labels[0].classes;
  if (labels.size() > 1) dataset.label_name = labels[0].name;
  dataset.more_labels.assign(std::next(labels.begin()), labels.end());
  const auto first = std::ranges::find_if(encoding.labels, [](const auto& label) { return !label.classes.empty(); });
  if (first != encoding.labels.end()) dataset.class_names = first->classes;
  data::check(dataset);
  return dataset;
}

}  // namespace concord::data
