// Predictions for samples of a data set.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/continuation.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/cli/transcripts.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/selection.hpp"

namespace concord::cli {
namespace {

/// The text of each token; a number that is none has its own digits.
std::vector<std::string> names_of_tokens(const data::Bpe& bpe) {
  std::vector<std::string> names;
  for (std::int32_t token = 0; token < bpe.size(); ++token) {
    try {
      names.push_back(printable(bpe.decode({&token, 1})));
    } catch (const ArgumentError&) {
      names.push_back(fmt::format("{}", token));
    }
  }
  return names;
}

std::vector<std::string> class_names_of(const DataSource& source, const Samples& samples) {
  if (!samples.class_names.empty()) return samples.class_names;
  const Trained trained = source.trained(samples);
  if (trained.bpe) return names_of_tokens(*trained.bpe);
  const std::optional<data::CsvEncoding>& table = trained.table;
  return table && !table->labels.empty() ? table->labels[0].classes : std::vector<std::string>();
}

/// The class of a sample, or of the last place of a sequence, if it has one.
std::optional<std::size_t> label_of(const Dataset& samples, std::int64_t row) {
  if (samples.labels.elements() == 0 || samples.labels.dtype() != DType::i32) return std::nullopt;
  const std::int64_t a_sample = samples.labels.elements() / samples.size();
  const auto last = static_cast<std::size_t>((row + 1) * a_sample - 1);
  return static_cast<std::size_t>(samples.labels.values<std::int32_t>()[last]);
}

/// The names of the numbers that the network predicts; none if it predicts classes.
std::vector<std::string> targets_of(const DataSource& source, const Dataset& samples) {
  const std::optional<data::CsvEncoding> table = source.trained(samples).table;
  std::vector<std::string> names;
  if (table) {
    for (const data::CsvEncoding::Label& label : table->labels) {
      if (label.classes.empty()) names.push_back(label.name);
    }
    if (names.size() < table->labels.size()) names.clear();
  } else if (samples.labels.elements() > 0 && samples.labels.dtype() == DType::f32) {
    const std::int64_t width = samples.labels.elements() / samples.size();
    for (std::int64_t i = 0; i < width; ++i) names.push_back(fmt::format("target {}", i));
  }
  return names;
}

/// On one line and in UTF-8, however long.
std::string shown_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    shown += printable(text.substr(0, length));
    text.remove_prefix(length);
  }
  return shown;
}

void add_answers(const std::map<std::string, Tensor>& values, const std::vector<LabelOutput>& outputs,
                 Results& results) {
  for (const LabelOutput& output : outputs) {
    const auto numbers = values.at(output.name).values<float>();
    const std::size_t width = output.names.size();
    for (std::size_t i = 0; i < results.predictions.size(); ++i) {
      std::vector<Answer>& answers = results.predictions[i].answers;
      const auto row = numbers.subspan(i * width, width);
      if (output.has_classes) {
        const Likely likely = likeliest(row, 1)[0];
        answers.push_back({output.name, output.names[likely.index], likely.probability, 0});
        continue;
      }
      for (std::size_t k = 0; k < width; ++k) answers.push_back({output.names[k], {}, 0, row[k]});
    }
  }
}

void add_texts(const Tensor& outputs, const Dataset& samples, const std::string& alphabet, Results& results) {
  CONCORD_CHECK(!alphabet.empty(), ArgumentError, "the weights do not say what the letters of transcripts are");
  const std::vector<std::string> texts = recognised_texts(outputs, alphabet);
  const std::vector<std::string> labels = transcripts_of(samples.labels, alphabet);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    results.predictions[i].text = texts[i];
    results.predictions[i].label_text = labels[i];
  }
}

}  // namespace

Results predict_samples(const PredictArguments& options, const SavedNetwork& saved) {
  DataSource source(options.data, *saved.model, 1, saved.trained);
  const SharedSamples all = source.evaluated(options.split);
  CONCORD_CHECK(options.first < all->size(), ArgumentError, "--first {}: there are {} samples, the first is 0",
                options.first, all->size());
  const std::int64_t count = std::min(options.count, all->size() - options.first);
  if (count < options.count && options.is_counted()) {
    log(LogLevel::warning, fmt::format("--first {} --count {}: there are {} samples, so {} are predicted",
                                       options.first, options.count, all->size(), count));
  }
  check_sheet(options, count);
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(options.first));
  Trainer trainer = trainer_for(options, saved, source.network_for(*all), source.objective_for(*all, {}));
  const Dataset samples = data::read_rows(*all, rows);
  Results results;
  results.names = class_names_of(source, *all);
  for (std::int64_t i = 0; i < count; ++i) {
    results.predictions.push_back({fmt::format("{}", options.first + i), {}, {}, {}});
    if (!options.sheet.empty()) results.pictures.push_back(picture_in(samples.features, i, all->name));
  }
  if (options.generate > 0) {
    CONCORD_CHECK(options.out.empty(), ArgumentError, "--generate has no outputs for --out");
    const auto written = continuations(trainer, samples.features, options.generate, options.batch);
    const Trained trained = source.trained(*all);
    for (std::size_t i = 0; i < written.size(); ++i) {
      results.predictions[i].text =
          shown_text(trained.bpe ? trained.bpe->decode(written[i]) : data::decode(trained.alphabet, written[i]));
    }
    return results;
  }
  if (const std::vector<LabelOutput> outputs = source.label_outputs(); !outputs.empty()) {
    CONCORD_CHECK(options.out.empty(), ArgumentError, "--out is for one label; this network predicts {}",
                  outputs.size());
    add_answers(trainer.predict_values(samples, options.batch), outputs, results);
    return results;
  }
  results.outputs.push_back(trainer.predict(samples, options.batch));
  const Tensor& outputs = results.outputs[0];
  if (saved.model->task == models::Task::transcription) {
    add_texts(outputs, samples, source.trained(*all).alphabet, results);
    return results;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    results.predictions[static_cast<std::size_t>(i)].label = label_of(samples, i);
  }
  if (const std::vector<std::string> targets = targets_of(source, samples); !targets.empty()) {
    results.names = targets;
    const std::size_t width = targets.size();
    for (std::size_t i = 0; i < results.predictions.size(); ++i) {
      const auto row = outputs.values<float>().subspan(i * width, width);
      results.predictions[i].numbers.assign(row.begin(), row.end());
    }
    return results;
  }
  std::vector<Prediction*> to;
  for (Prediction& prediction : results.predictions) to.push_back(&prediction);
  add_predictions(outputs, options.top, to);
  return results;
}

}  // namespace concord::cli
