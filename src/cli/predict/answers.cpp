// Rows of outputs as predictions.
#include "concord/cli/predict/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "concord/cli/predict/outputs.hpp"
#include "concord/cli/predict/pixel_classes.hpp"
#include "concord/cli/transcripts.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// The text of each token; a number that is none has its own digits.
std::vector<std::string> names_of_tokens(const data::Bpe& bpe) {
  std::vector<std::string> names;
  for (std::int32_t token = 0; token < bpe.size(); ++token) {
    try {
      names.push_back(in_utf8(bpe.decode({&token, 1})));
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
    names = names_of_targets(samples.labels.elements() / samples.size());
  }
  return names;
}

void add_several(const std::map<std::string, Tensor>& values, const std::vector<LabelOutput>& outputs,
                 const std::vector<Prediction*>& to) {
  for (const LabelOutput& output : outputs) {
    const auto numbers = values.at(output.name).values<float>();
    const std::size_t width = output.names.size();
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::vector<Answer>& answers = to[i]->answers;
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

void add_texts(const Tensor& outputs, const Dataset& samples, const std::string& alphabet,
               const std::vector<Prediction*>& to) {
  CONCORD_CHECK(!alphabet.empty(), ArgumentError, "the weights do not say what the letters of transcripts are");
  const std::vector<std::string> texts = recognised_texts(outputs, alphabet);
  const std::vector<std::string> labels = transcripts_of(samples.labels, alphabet);
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i]->text = texts[i];
    to[i]->label_text = labels[i];
  }
}

}  // namespace

std::vector<std::string> names_of_targets(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(fmt::format("target {}", i));
  return names;
}

void add_numbers(const Tensor& outputs, const std::vector<Prediction*>& to) {
  const std::size_t width = static_cast<std::size_t>(outputs.elements()) / to.size();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto row = outputs.values<float>().subspan(i * width, width);
    to[i]->numbers.assign(row.begin(), row.end());
  }
}

void refuse_not_finite(const Tensor& outputs, const std::vector<Prediction*>& to) {
  // A class may be impossible: its logit is -inf, and the other classes have probabilities.
  const auto is_finite = [](float value) { return value < std::numeric_limits<float>::infinity(); };
  const std::size_t width = static_cast<std::size_t>(outputs.elements()) / to.size();
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (std::ranges::all_of(outputs.values<float>().subspan(i * width, width), is_finite)) continue;
    Prediction& refused = *to[i];
    refused.error = "the outputs of the network are NaN or infinite";
    refused.classes.clear();
    refused.numbers.clear();
    refused.answers.clear();
    refused.text.reset();
  }
}

void add_answers(Trainer& trainer, const DataSource& source, const Samples& all, const Dataset& samples,
                 const PredictArguments& options, const SavedNetwork& saved, const std::vector<Prediction*>& to,
                 Results& results) {
  if (results.names.empty()) results.names = class_names_of(source, all);
  if (const std::vector<LabelOutput> outputs = source.label_outputs(); !outputs.empty()) {
    options.refuse_top("predicts several labels");
    CONCORD_CHECK(options.out.empty(), ArgumentError, "--out is for one label; this network predicts {}",
                  outputs.size());
    const std::map<std::string, Tensor> values = named_outputs_of(trainer, samples, options, saved);
    add_several(values, outputs, to);
    for (const LabelOutput& output : outputs) refuse_not_finite(values.at(output.name), to);
    return;
  }
  std::vector<std::string> targets = targets_of(source, samples);
  if (!targets.empty()) options.refuse_top("predicts numbers");
  const Tensor outputs = outputs_of(trainer, samples, options, saved);
  if (targets.empty() && saved.trained.has_targets) {  // samples without labels
    targets = names_of_targets(outputs.elements() / samples.size());
  }
  if (saved.model->task == models::Task::transcription) {
    add_texts(outputs, samples, source.trained(all).alphabet, to);
  } else if (saved.model->task == models::Task::segmentation) {
    results.names = names_of_shares(outputs);
    add_pixel_shares(outputs, to);
  } else if (targets.empty()) {
    add_predictions(outputs, results.scores, options.top, to);
  } else {
    results.names = targets;
    add_numbers(outputs, to);
  }
  refuse_not_finite(outputs, to);
  if (options.keep_outputs(*saved.model)) results.outputs.push_back(outputs);
}

}  // namespace concord::cli
