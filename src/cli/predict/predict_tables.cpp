// Predictions for rows of tables.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "concord/cli/counted.hpp"
#include "concord/cli/data_parts.hpp"
#include "concord/cli/predict/answers.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/selection.hpp"
#include "concord/data/table/csv_inputs.hpp"

namespace concord::cli {
namespace {

/// The file of the part that --split names, or of all rows where there is no such part.
std::string file_of_part(const DataSpec& spec, const PredictArguments& options) {
  if (options.split == "train") return spec.path;
  const std::string file = spec.option(options.split == "test" ? "test" : "val");
  if (file.empty() && options.split_option->count() > 0) {
    log(LogLevel::warning, fmt::format("{} has no {} part: its rows are taken", spec.text, options.split));
  }
  return file.empty() ? spec.path : file;
}

/// Rows [first, end) of one table.
void add_rows(const data::CsvInputs& table, std::int64_t first, std::int64_t end, const std::string& prefix,
              bool has_one_label, std::vector<std::int32_t>& rows, Results& results) {
  std::int32_t good = 0;
  for (std::int64_t i = 0; i < end; ++i) {
    const data::CsvInputs::Row& row = table.rows[static_cast<std::size_t>(i)];
    const std::int32_t place = row.problem.empty() ? good++ : -1;
    if (i < first) continue;
    Prediction& prediction = results.predictions.emplace_back();
    prediction.sample = fmt::format("{}{}", prefix, i);
    if (prefix.empty()) prediction.row = i;
    if (place < 0) {
      prediction.error = fmt::format("line {}: {}", row.line, row.problem);
      continue;
    }
    rows.push_back(place);
    if (has_one_label && row.label >= 0) prediction.label = static_cast<std::size_t>(row.label);
  }
}

}  // namespace

Results predict_tables(const PredictArguments& options, const SavedNetwork& saved,
                       const std::vector<std::string>& files) {
  const bool are_files = !files.empty();
  DataOptions data = options.data;
  if (are_files) data.text = unread_data("csv", files);
  const DataSource source(data, *saved.model, 1, saved.trained);
  const data::CsvOptions how = csv_options_of(source.spec());
  check_encoding_fits(how, *saved.trained.table);
  std::vector<std::string> tables = files;
  if (!are_files) tables.push_back(file_of_part(source.spec(), options));
  Results results;
  results.unit = "row";
  for (const std::string& file : tables) {
    const data::CsvInputs table = data::csv_inputs(file, how, *saved.trained.table);
    const auto size = std::ssize(table.rows);
    const std::int64_t first = are_files ? 0 : options.first;
    CONCORD_CHECK(first < size, ArgumentError, "--first {}: {} has rows 0 to {}", first, printable(file), size - 1);
    const std::int64_t count = are_files ? size : std::min(options.count, size - first);
    if (!are_files && count < options.count && options.is_counted()) {
      log(LogLevel::warning, fmt::format("--first {} --count {}: the table has {}, so --count is {}", first,
                                         options.count, counted(size, "row"), count));
    }
    if (!are_files && count < size && !options.is_counted()) {
      say(fmt::format("{} of {} rows; --count takes more", count, size));
    }
    const std::size_t before = results.predictions.size();
    std::vector<std::int32_t> rows;
    add_rows(table, first, first + count, tables.size() > 1 ? file + ":" : "", saved.trained.table->labels.size() == 1,
             rows, results);
    if (rows.empty()) continue;
    std::vector<Prediction*> to;
    for (std::size_t i = before; i < results.predictions.size(); ++i) {
      if (results.predictions[i].error.empty()) to.push_back(&results.predictions[i]);
    }
    Trainer trainer =
        trainer_for(options, saved, source.network_for(table.dataset), source.objective_for(table.dataset, {}));
    const auto batch = static_cast<std::size_t>(options.batch);
    for (std::size_t at = 0; at < rows.size(); at += batch) {
      const std::size_t some = std::min(batch, rows.size() - at);
      const std::vector<Prediction*> of_batch(to.begin() + static_cast<std::ptrdiff_t>(at),
                                              to.begin() + static_cast<std::ptrdiff_t>(at + some));
      const Dataset samples = data::read_rows(table.dataset, std::span(rows).subspan(at, some));
      add_answers(trainer, source, table.dataset, samples, options, saved, of_batch, results);
    }
  }
  return results;
}

}  // namespace concord::cli
