// Tables as data sets: what is read of a file, for training and with the encoding of a trained model.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/selection.hpp"
#include "concord/data/table/csv.hpp"
#include "concord/data/table/csv_file.hpp"
#include "concord/data/table/csv_memory.hpp"

namespace concord::data {
namespace {

/// What is to be read for an encoding; labels only if the file has all of them.
CsvOptions options_for(const CsvEncoding& encoding, const CsvOptions& given, const CsvFile& file,
                       const std::filesystem::path& path) {
  CsvOptions options;
  options.separator = given.separator;
  options.decimal = given.decimal;
  options.header = given.header;
  options.bad = given.bad;
  options.most_categories = kMostCategories;  // the encoding has its own, and all others are one feature
  for (const CsvEncoding::Input& input : encoding.inputs) {
    (input.is_category ? options.categories : options.numbers).push_back(input.name);
    options.columns.push_back(input.name);
  }
  std::vector<std::string> absent;
  for (const CsvEncoding::Label& label : encoding.labels) {
    if (!file.has(label.name)) absent.push_back(label.name);
  }
  if (!absent.empty() && absent.size() < encoding.labels.size()) {
    log(LogLevel::warning, fmt::format("{}: without its column '{}' the other labels are not read either",
                                       printable(path.string()), absent[0]));
  }
  for (const CsvEncoding::Label& label : encoding.labels) {
    if (!absent.empty()) break;
    (label.classes.empty() ? options.targets : options.labels).push_back(label.name);
    if (label.is_text) options.categories.push_back(label.name);  // else "01" would be 1
  }
  return options;
}

}  // namespace

const CsvColumn* CsvTable::find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column, &CsvColumn::name);
  return found == columns.end() ? nullptr : &*found;
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return with_csv_memory(path, [&] { return CsvFile(path, options, csv_names_in(options)).read(options); });
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options, const CsvEncoding& fitted) {
  return with_csv_memory(path, [&] {
    std::vector<std::string> known;
    for (const auto& input : fitted.inputs) known.push_back(input.name);
    for (const auto& label : fitted.labels) known.push_back(label.name);
    const CsvFile file(path, options, known);
    return file.read(options_for(fitted, options, file, path));
  });
}

std::pair<Dataset, CsvEncoding> csv(const std::filesystem::path& path, const CsvOptions& options,
                                    const CsvEncoding* fitted) {
  return with_csv_memory(path, [&]() -> std::pair<Dataset, CsvEncoding> {
    if (fitted != nullptr) return {encode_csv(read_csv(path, options, *fitted), *fitted), *fitted};
    CONCORD_CHECK(!options.labels.empty() || !options.targets.empty(), ArgumentError,
                  "{}: say which column is the label (label=NAME) or the target (target=NAME)",
                  printable(path.string()));
    const CsvTable table = read_csv(path, options);
    CsvEncoding encoding = fit_csv(table, options);
    Dataset dataset = encode_csv(table, encoding);
    return {std::move(dataset), std::move(encoding)};
  });
}

CsvSplit csv_split(const std::filesystem::path& path, const CsvOptions& options, std::int64_t count,
                   std::uint64_t seed) {
  return with_csv_memory(path, [&]() -> CsvSplit {
    const CsvTable table = read_csv(path, options);
    const auto [train, held_out] = split_rows(table.rows, count, table.name, seed);
    CsvEncoding encoding = fit_csv(table, options, train);
    const SharedSamples all = encode_csv(table, encoding);
    return {Selection(all, train), Selection(all, held_out), std::move(encoding)};
  });
}

}  // namespace concord::data
