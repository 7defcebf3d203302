// Predictions for samples of a data set.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/answers.hpp"
#include "concord/cli/predict/continuation.hpp"
#include "concord/cli/predict/read_rows.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/cli/sample_kind.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// The class of a sample, or of the last place of a sequence, if it has one.
std::optional<std::size_t> label_of(const Dataset& samples, std::int64_t row) {
  if (samples.labels.elements() == 0 || samples.labels.dtype() != DType::i32) return std::nullopt;
  const std::int64_t a_sample = samples.labels.elements() / samples.size();
  const auto last = static_cast<std::size_t>((row + 1) * a_sample - 1);
  return static_cast<std::size_t>(samples.labels.values<std::int32_t>()[last]);
}

/// The text of tokens or letters; a number that stands for none is shown as one.
std::string written_text(const Trained& trained, const std::vector<std::int32_t>& written) {
  const auto decoded = [&](std::span<const std::int32_t> numbers) {
    return trained.bpe ? trained.bpe->decode(numbers) : data::decode(trained.alphabet, numbers);
  };
  try {
    return in_utf8(decoded(written));
  } catch (const ArgumentError&) {  // a vocabulary may have numbers without a token
    std::string text;
    for (const std::int32_t number : written) {
      try {
        text += decoded({&number, 1});
      } catch (const ArgumentError&) {
        text += fmt::format("<{}>", number);
      }
    }
    return in_utf8(text);
  }
}

void add_batch(Trainer& trainer, const DataSource& source, const Samples& all, const std::vector<std::int32_t>& rows,
               const PredictArguments& options, const SavedNetwork& saved, Results& results) {
  const RowsRead read = read_in_parallel(all, rows);
  const std::size_t before = results.predictions.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    results.predictions.push_back({.sample = fmt::format("{}", rows[i]), .error = read.errors[i], .row = rows[i]});
  }
  if (!options.sheet.empty()) add_pictures(read, all.name, results.pictures);
  std::vector<Prediction*> to;
  for (std::size_t i = before; i < results.predictions.size(); ++i) {
    if (results.predictions[i].error.empty()) to.push_back(&results.predictions[i]);
  }
  if (to.empty()) return;
  if (options.generate > 0) {
    const auto written = continuations(trainer, read.dataset.features, options.generate, options.batch);
    const Trained trained = source.trained(all);
    for (std::size_t i = 0; i < written.size(); ++i) to[i]->text = written_text(trained, written[i]);
    return;
  }
  const models::Task task = saved.model->task;
  const bool has_one_label = task != models::Task::transcription && task != models::Task::segmentation;
  for (std::size_t i = 0; has_one_label && i < to.size(); ++i) {
    to[i]->label = label_of(read.dataset, static_cast<std::int64_t>(i));
  }
  add_answers(trainer, source, all, read.dataset, options, saved, to, results);
}

}  // namespace

Results predict_samples(const PredictArguments& options, const SavedNetwork& saved) {
  check_data_fits(saved, options.data.text, "predict");
  if (saved.trained.table && kind_of_data(DataSpec::parse(options.data.text).kind) == SampleKind::table) {
    return predict_tables(options, saved, {});
  }
  DataSource source(options.data, *saved.model, 1, saved.trained);
  const SharedSamples all = source.evaluated(options.split, options.split_option->count() > 0).samples;
  CONCORD_CHECK(options.first < all->size(), ArgumentError, "--first {}: {} has samples 0 to {}", options.first,
                all->name, all->size() - 1);
  const std::int64_t count = std::min(options.count, all->size() - options.first);
  if (count < options.count && options.is_counted()) {
    log(LogLevel::warning, fmt::format("--first {} --count {}: the data has {}, so --count is {}", options.first,
                                       options.count, counted(all->size(), "sample"), count));
  }
  if (count < all->size() && !options.is_counted()) {
    say(fmt::format("{} of {} samples; --count takes more", count, all->size()));
  }
  check_sheet(options, count);
  CONCORD_CHECK(options.generate == 0 || options.out.empty(), ArgumentError, "--generate has no outputs for --out");
  const std::shared_ptr<nn::Module> network = source.network_for(*all);
  Trainer trainer = trainer_for(options, saved, network, source.objective_for(*all, {}));
  Results results;
  if (gives_probabilities(*saved.model, *network, *all)) results.scores = Scores::probabilities;
  results.unit = "sample";
  for (std::int64_t first = 0; first < count; first += options.batch) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(std::min(options.batch, count - first)));
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(options.first + first));
    add_batch(trainer, source, *all, rows, options, saved, results);
  }
  return results;
}

}  // namespace concord::cli
