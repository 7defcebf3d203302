// What a label is, is known when all of them have been seen. A column of numbers and words is refused, since one
// damaged number among a million would make names of all of them.
#include "concord/data/records/label_column.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

enum class LabelKind : std::uint8_t { whole, decimal, word };

std::string_view words_for(LabelKind kind) {
  switch (kind) {
    case LabelKind::whole: return "a whole number";
    case LabelKind::decimal: return "a number with a decimal point";
    case LabelKind::word: break;
  }
  return "a word";
}

/// A number that is too small for a float is 0, one that is too large infinite.
std::optional<float> target_in_text(std::string_view text) {
  if (const auto target = number_in_text<float>(text); target || text.starts_with('+')) return target;
  const CsvNumber number = parse_csv_number(text, false);
  if (number.kind == CsvFieldKind::number) return static_cast<float>(number.value);
  if (number.kind == CsvFieldKind::too_large) return std::numeric_limits<float>::infinity();
  return std::nullopt;
}

LabelKind kind_of_label(std::string_view text) {
  const bool has_digits_alone = std::all_of(text.begin() + (text.starts_with('-') ? 1 : 0), text.end(), is_digit);
  if (has_digits_alone && text != "-") return LabelKind::whole;
  return target_in_text(text) ? LabelKind::decimal : LabelKind::word;
}

[[noreturn]] void fail_at_label(const LabelTexts& labels, std::size_t row, std::string_view message) {
  throw FormatError(fmt::format("{}: {}", labels.place(row), message));
}

LabelKind kind_of_all(const LabelTexts& labels) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::size_t number = kNone, word = kNone;  // rows
  LabelKind kind = LabelKind::whole;
  for (std::size_t row = 0; row < labels.count; ++row) {
    const LabelKind here = kind_of_label(labels.text(row));
    if (here == LabelKind::decimal) kind = here;
    std::size_t& known = here == LabelKind::word ? word : number;
    if (known == kNone) known = row;
    if (number == kNone || word == kNone) continue;
    const std::size_t first = std::min(number, word);
    fail_at_label(
        labels, row,
        fmt::format("the label \"{}\" is {}, but \"{}\" is {} ({})", printable(labels.text(row)), words_for(here),
                    printable(labels.text(first)), words_for(kind_of_label(labels.text(first))), labels.place(first)));
  }
  return word == kNone ? kind : LabelKind::word;
}

Column numbered_classes(const LabelTexts& labels, std::size_t known) {
  std::vector<std::int32_t> values(labels.count);
  std::int32_t largest = 0;
  for (std::size_t row = 0; row < values.size(); ++row) {
    const std::string_view text = labels.text(row);
    const auto value = number_in_text<std::int32_t>(text);
    if (text.starts_with('-')) {
      fail_at_label(labels, row, fmt::format("the class {} is negative; a target has a decimal point", text));
    }
    if (!value || *value == std::numeric_limits<std::int32_t>::max()) {
      fail_at_label(labels, row, fmt::format("the class {} is too large; a target has a decimal point", text));
    }
    CONCORD_CHECK(known == 0 || static_cast<std::size_t>(*value) < known, ArgumentError,
                  "{}: the class {} is not one of the {} classes of the model", labels.place(row), *value, known);
    values[row] = *value;
    largest = std::max(largest, *value);
  }
  return class_column(values, known == 0 ? largest + 1 : static_cast<int>(known));
}

Column targets_of(const LabelTexts& labels) {
  std::vector<float> values(labels.count);
  for (std::size_t row = 0; row < values.size(); ++row) {
    values[row] = target_in_text(labels.text(row)).value_or(std::numeric_limits<float>::infinity());
    if (!std::isfinite(values[row])) {
      fail_at_label(labels, row, fmt::format("the target {} is not finite", labels.text(row)));
    }
  }
  return target_column(values);
}

Column named_classes(const LabelTexts& labels, std::vector<std::string>& class_names) {
  if (class_names.empty()) {
    std::set<std::string_view> sorted;
    for (std::size_t row = 0; row < labels.count; ++row) {
      const std::string_view text = labels.text(row);
      if (sorted.insert(text).second) check_class_name(text, labels.place(row) + ": the label");
    }
    class_names.assign(sorted.begin(), sorted.end());
  }
  const ClassTable classes(class_names);
  std::vector<std::int32_t> values(labels.count);
  for (std::size_t row = 0; row < values.size(); ++row) {
    const auto value = classes.find(labels.text(row));
    CONCORD_CHECK(value.has_value(), ArgumentError, "{}: \"{}\" is not one of the classes of the model: {}",
                  labels.place(row), printable(labels.text(row)), some_of(class_names));
    values[row] = *value;
  }
  return class_column(values, static_cast<int>(class_names.size()));
}

// Names may be numbers, such as "7".
bool are_known_names(const LabelTexts& labels, const std::vector<std::string>& class_names) {
  const ClassTable known(class_names);
  for (std::size_t row = 0; row < labels.count; ++row) {
    if (!known.find(labels.text(row))) return false;
  }
  return true;
}

}  // namespace

Column label_column(const LabelTexts& labels, std::vector<std::string>& class_names) {
  if (are_known_names(labels, class_names)) return named_classes(labels, class_names);
  switch (kind_of_all(labels)) {
    case LabelKind::whole: return numbered_classes(labels, class_names.size());
    case LabelKind::decimal: return targets_of(labels);
    case LabelKind::word: break;
  }
  return named_classes(labels, class_names);
}

}  // namespace concord::data
