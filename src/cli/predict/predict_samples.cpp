// Predictions for samples of a data set.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/answers.hpp"
#include "concord/cli/predict/continuation.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/cli/sample_kind.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/selection.hpp"

namespace concord::cli {
namespace {

/// The class of a sample, or of the last place of a sequence, if it has one.
std::optional<std::size_t> label_of(const Dataset& samples, std::int64_t row) {
  if (samples.labels.elements() == 0 || samples.labels.dtype() != DType::i32) return std::nullopt;
  const std::int64_t a_sample = samples.labels.elements() / samples.size();
  const auto last = static_cast<std::size_t>((row + 1) * a_sample - 1);
  return static_cast<std::size_t>(samples.labels.values<std::int32_t>()[last]);
}

/// The samples that can be read, of no rows if there is none. The predictions of the others get their error.
Dataset read_good_rows(const Samples& all, const std::vector<std::int32_t>& rows,
                       std::vector<Prediction>& predictions) {
  try {
    return data::read_rows(all, rows);
  } catch (const FormatError&) {  // of which row is seen below
  } catch (const IoError&) {
  }
  std::vector<std::int32_t> good;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    try {
      static_cast<void>(data::read_rows(all, {&rows[i], 1}));
      good.push_back(rows[i]);
    } catch (const FormatError& error) {
      predictions[i].error = without_name(error.what(), all.name_of(rows[i]));
    } catch (const IoError& error) {
      predictions[i].error = without_name(error.what(), all.name_of(rows[i]));
    }
  }
  return good.empty() ? Dataset() : data::read_rows(all, good);
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

}  // namespace

Results predict_samples(const PredictArguments& options, const SavedNetwork& saved) {
  check_data_fits(saved, options.data.text, "predict");
  if (saved.trained.table && kind_of_data(DataSpec::parse(options.data.text).kind) == SampleKind::table) {
    return predict_tables(options, saved, {});
  }
  DataSource source(options.data, *saved.model, 1, saved.trained);
  const SharedSamples all = source.evaluated(options.split);
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
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(options.first));
  const std::shared_ptr<nn::Module> network = source.network_for(*all);
  Trainer trainer = trainer_for(options, saved, network, source.objective_for(*all, {}));
  Results results;
  if (gives_probabilities(*saved.model, *network, *all)) results.scores = Scores::probabilities;
  results.unit = "sample";
  for (std::int64_t i = 0; i < count; ++i) {
    results.predictions.push_back({.sample = fmt::format("{}", options.first + i), .row = options.first + i});
  }
  const Dataset samples = read_good_rows(*all, rows, results.predictions);
  std::vector<Prediction*> to;
  for (Prediction& prediction : results.predictions) {
    const bool is_good = prediction.error.empty();
    if (!options.sheet.empty()) {
      results.pictures.push_back(is_good ? picture_in(samples.features, std::ssize(to), all->name) : Tensor());
    }
    if (is_good) to.push_back(&prediction);
  }
  if (to.empty()) return results;
  if (options.generate > 0) {
    CONCORD_CHECK(options.out.empty(), ArgumentError, "--generate has no outputs for --out");
    const auto written = continuations(trainer, samples.features, options.generate, options.batch);
    const Trained trained = source.trained(*all);
    for (std::size_t i = 0; i < written.size(); ++i) {
      to[i]->text = written_text(trained, written[i]);
    }
    return results;
  }
  const models::Task task = saved.model->task;
  const bool has_one_label = task != models::Task::transcription && task != models::Task::segmentation;
  for (std::size_t i = 0; has_one_label && i < to.size(); ++i) {
    to[i]->label = label_of(samples, static_cast<std::int64_t>(i));
  }
  add_answers(trainer, source, *all, samples, options, saved, to, results);
  return results;
}

}  // namespace concord::cli
