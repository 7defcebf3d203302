// Rows in the order of their file, and labels as text.
#include "concord/data/table/csv_inputs.hpp"

#include <algorithm>

#include "concord/data/table/csv_file.hpp"
#include "concord/data/table/csv_memory.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

/// Null if there is none.
const CsvEncoding::Label* first_with_classes(const CsvEncoding& encoding) {
  const auto found = std::ranges::find_if(encoding.labels, [](const auto& label) { return !label.classes.empty(); });
  return found == encoding.labels.end() ? nullptr : &*found;
}

/// What is to be read to predict. Labels are text, whatever it is.
CsvOptions options_to_predict(const CsvEncoding& encoding, const CsvOptions& given, const CsvFile& file) {
  CsvOptions options;
  options.separator = given.separator;
  options.decimal = given.decimal;
  options.header = given.header;
  options.most_categories = std::int64_t{1} << 24;
  for (const CsvEncoding::Input& input : encoding.inputs) {
    (input.is_category ? options.categories : options.numbers).push_back(input.name);
  }
  options.columns = csv_names_in(options);
  const CsvEncoding::Label* const label = first_with_classes(encoding);
  // A label that is not in UTF-8 is no class, and makes no row bad.
  if (label != nullptr && file.has(label->name) && file.is_in_utf8()) options.categories.push_back(label->name);
  return options;
}

/// The class of each row of the table.
std::vector<std::int32_t> known_classes(const CsvTable& table, const CsvEncoding::Label& label) {
  const CsvColumn* const column = table.find(label.name);
  std::vector<std::int32_t> classes(static_cast<std::size_t>(table.rows), -1);
  if (column == nullptr) return classes;
  const auto place = [&](const std::string& name) {
    const auto found = std::ranges::find(label.classes, name);
    return found == label.classes.end() ? -1 : static_cast<std::int32_t>(found - label.classes.begin());
  };
  std::vector<std::int32_t> places;
  for (const std::string& text : column->values) {
    places.push_back(place(text));
    const CsvNumber number = parse_csv_number(text, table.separator != ',');
    if (places.back() < 0 && !label.is_text && number.kind == CsvFieldKind::number)
      places.back() = place(csv_class_name(number.value));
  }
  for (std::size_t row = 0; row < classes.size(); ++row) {
    const std::int32_t index = column->indices[row];
    if (index >= 0) classes[row] = places[static_cast<std::size_t>(index)];
  }
  return classes;
}

}  // namespace

CsvInputs csv_inputs(const std::filesystem::path& path, const CsvOptions& options, const CsvEncoding& fitted) {
  return with_csv_memory(path, [&] {
    const CsvEncoding::Label* const label = first_with_classes(fitted);
    std::vector<std::string> known;
    for (const auto& input : fitted.inputs) known.push_back(input.name);
    for (const auto& one : fitted.labels) known.push_back(one.name);
    const CsvFile file(path, options, known);
    std::vector<CsvBadRow> bad_rows;
    const CsvTable table = file.read(options_to_predict(fitted, options, file), &bad_rows);
    CsvInputs inputs;
    if (table.rows > 0) inputs.dataset = encode_csv(table, {fitted.inputs, {}});
    const std::vector<std::int32_t> classes =
        label == nullptr ? std::vector<std::int32_t>(table.lines.size(), -1) : known_classes(table, *label);
    auto bad = bad_rows.begin();
    for (std::size_t row = 0; row < table.lines.size(); ++row) {
      for (; bad != bad_rows.end() && bad->line < table.lines[row]; ++bad) {
        inputs.rows.push_back({bad->line, bad->problem});
      }
      inputs.rows.push_back({table.lines[row], {}, classes[row]});
    }
    for (; bad != bad_rows.end(); ++bad) inputs.rows.push_back({bad->line, bad->problem});
    return inputs;
  });
}

}  // namespace concord::data
