// Fuzzing the reader of tables. A table is refused, or encoded; the encoding survives JSON and reads the same file to
// the same features.
#include "concord/data/table/csv.hpp"

#include <algorithm>
#include <cstdlib>

#include "concord/core/error.hpp"
#include "file_of_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const test::FileOfInput file;
  if (size == 0) return 0;
  // The first byte has options.
  data::CsvOptions options;
  if ((data[0] & 1U) != 0) options.bad = data::BadRows::skip;
  if ((data[0] & 2U) != 0) options.header = (data[0] & 4U) != 0;
  if ((data[0] & 8U) != 0) options.separator = ",;|\t"[data[0] >> 6U];
  if ((data[0] & 16U) != 0) options.most_categories = 3;
  file.write({data + 1, size - 1});
  data::CsvTable table;
  try {
    table = data::read_csv(file.path(), options);
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find(file.path()) == std::string_view::npos) std::abort();
    return 0;
  }
  if (table.columns.size() < 2) return 0;
  for (const data::CsvColumn& column : table.columns) {
    const std::size_t rows = column.is_text ? column.indices.size() : column.numbers.size();
    if (rows != static_cast<std::size_t>(table.rows) || !std::ranges::is_sorted(column.values)) std::abort();
  }
  options.labels = {table.columns.back().name};
  try {
    const auto [dataset, encoding] = data::csv(file.path(), options);
    if (data::csv_encoding_from_json(data::to_json(encoding)) != encoding) std::abort();
    options.header = table.has_header;
    options.separator = table.separator;
    const auto [again, same] = data::csv(file.path(), options, &encoding);
    if (dataset.size() != again.size() || !std::ranges::equal(dataset.features.bytes(), again.features.bytes()) ||
        !std::ranges::equal(dataset.labels.bytes(), again.labels.bytes())) {
      std::abort();
    }
  } catch (const FormatError&) {    // a label is missing
  } catch (const ArgumentError&) {  // no column has values
  }
  return 0;
}
