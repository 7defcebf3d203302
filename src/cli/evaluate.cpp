// concord evaluate: loss and accuracy of saved weights on a data set.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/counted.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/label_metrics.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/sample_kind.hpp"
#include "concord/cli/saved_network.hpp"
#include "concord/cli/transcripts.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/selection.hpp"

namespace concord::cli {
namespace {

struct EvaluateArguments {
  std::vector<std::string> words;  // the network, its weights, the data
  DeviceOption device;
  PrecisionOption precision;
  TraceOption trace;
  SavedModelOptions saved;
  EvaluateOptions evaluate;
  CLI::Option *top = nullptr, *batch = nullptr;
  bool confusion = false;
  bool json = false;
};

std::string matrix_text(const Samples& dataset, const Tensor& matrix) {
  const std::int64_t classes = matrix.shape()[0];
  const auto name = [&](std::int64_t c) {
    const auto i = static_cast<std::size_t>(c);
    return i < dataset.class_names.size() ? dataset.class_names[i] : fmt::format("{}", c);
  };
  std::vector<std::vector<std::string>> rows{{"label \\ predicted"}};
  for (std::int64_t c = 0; c < classes; ++c) rows[0].push_back(name(c));
  const auto counts = matrix.values<std::int32_t>();
  for (std::int64_t label = 0; label < classes; ++label) {
    rows.push_back({name(label)});
    for (std::int64_t c = 0; c < classes; ++c) {
      rows.back().push_back(fmt::format("{}", counts[static_cast<std::size_t>(label * classes + c)]));
    }
  }
  return table(rows);
}

/// The class of each sample.
Tensor labels_of(const Samples& samples) {
  Tensor labels(DType::i32, Shape{samples.size()});
  const auto values = labels.values<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = samples.class_of(static_cast<std::int64_t>(i)).value();
  }
  return labels;
}

/// If --top is given, its k must not exceed the number of classes.
void check_top(const EvaluateArguments& options, const Samples& dataset) {
  const int classes = dataset.label_specs()[0].classes;
  if (options.top->count() == 0 || options.evaluate.k <= classes) return;
  throw ArgumentError(classes > 0 ? fmt::format("--top {}: {} has {}", options.evaluate.k, dataset.name,
                                                counted(classes, "class", "classes"))
                                  : fmt::format("--top {}: {} has no classes", options.evaluate.k, dataset.name));
}

/// Throws NotSupported if an ONNX file fixes the samples of a batch and these do not fill the last one: a copy that
/// filled it would count in the loss.
void check_fills_batches(const SavedNetwork& saved, const Samples& dataset) {
  const std::int64_t fixed = fixed_batch(*saved.model), samples = dataset.size();
  CONCORD_CHECK(fixed == 0 || samples % fixed == 0, NotSupported,
                "{} takes batches of {}, which {} {} not fill; export it with a free batch, as `concord export --batch "
                "N` does",
                printable(saved.model->name), fixed, counted(samples, "sample"), samples == 1 ? "does" : "do");
}

/// Called after the results, which are printed in any case.
void check_finite(const Metrics& metrics) {
  const bool counts_none = metrics.accuracy && std::isnan(*metrics.accuracy) && std::isnan(metrics.loss);
  if (counts_none) throw NonFinite("no label counts: all have the number that means no class");
  if (!std::isfinite(metrics.loss)) throw NonFinite("the loss is not finite");
}

/// The data is the word behind network and weights, or --data. For the weights of a table, the file of another one will
/// do.
void take_data(std::vector<std::string>& words, const SavedNetwork& saved, DataOptions& data) {
  if (data.text.empty() && !words.empty()) {
    const bool is_table = saved.trained.table && std::filesystem::is_regular_file(words.front());
    data.text = (is_table ? "csv:" : "") + words.front();
    words.erase(words.begin());
  }
  CONCORD_CHECK(!data.text.empty(), ArgumentError,
                "evaluate needs data: `concord evaluate net.safetensors DATA`, or --data DATA");
  CONCORD_CHECK(words.empty(), ArgumentError, "evaluate: '{}' is one word too many", words.front());
}

void run_evaluate(EvaluateArguments options) {
  const SavedNetwork saved = take_saved_network(options.words, options.saved.weights, options.saved.permit, "evaluate");
  options.evaluate.batch = batch_for(saved, options.evaluate.batch, *options.batch);
  take_data(options.words, saved, options.saved.data);
  options.saved.data.is_trained_on = false;
  check_data_fits(saved, options.saved.data.text, "evaluate");
  const models::Model& model = *saved.model;
  DataSource source(options.saved.data, model, 1, saved.trained);
  const auto [samples, part] = source.evaluated(options.saved.split, options.saved.split_option->count() > 0);
  const Samples& dataset = *samples;
  if (dataset.label_specs().empty()) {
    throw ArgumentError(fmt::format("{} has no labels to evaluate; predict needs none", dataset.name));
  }
  check_fills_batches(saved, dataset);
  check_top(options, dataset);
  const ColumnSpec labels = dataset.label_specs()[0];
  if (options.confusion && (labels.classes == 0 || labels.spec.shape.rank() != 0)) {
    throw ArgumentError(fmt::format("--confusion: {} has no class for each sample", dataset.name));
  }
  CONCORD_CHECK(!options.confusion || source.label_outputs().empty(), ArgumentError,
                "--confusion: {} has several labels", dataset.name);
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  Trainer trainer(source.network_for(dataset), source.objective_for(dataset, {}), optim::Sgd{}, device,
                  {.precision = options.precision.get()});
  load_weights(trainer, saved, options.saved.permit);
  std::vector<std::int32_t> damaged;
  const LabelMetrics label_metrics(dataset, source.trained(dataset).table);
  options.evaluate.metrics = label_metrics.parts();
  options.evaluate.left_out = [&](std::int32_t row) { damaged.push_back(row); };
  Metrics metrics = trainer.evaluate(dataset, options.evaluate);
  label_metrics.join(metrics.named);
  const SharedSamples counted_samples = damaged.empty() ? samples : data::without_rows(samples, damaged);
  if (model.task == models::Task::transcription && !saved.trained.alphabet.empty()) {
    const data::TranscriptErrors errors =
        transcript_errors(trainer, *counted_samples, saved.trained.alphabet, options.evaluate.batch);
    metrics.named.emplace("character error rate", errors.character_error_rate());
    metrics.named.emplace("word error rate", errors.word_error_rate());
  }
  Tensor matrix;
  if (options.confusion) {
    matrix = confusion_matrix(trainer.predict(*counted_samples, options.evaluate.batch), labels_of(*counted_samples));
  }
  if (options.json) {
    nlohmann::json json{{"model", model.name},         {"data", dataset.name},       {"split", part},
                        {"device", device->info().id}, {"samples", metrics.samples}, {"loss", metrics.loss}};
    if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
    if (metrics.top_k) json["top_k"] = *metrics.top_k;
    if (metrics.top_k) json["k"] = metrics.k;
    if (!metrics.named.empty()) json["metrics"] = metrics.named;
    if (options.confusion) {
      const auto counts = matrix.values<std::int32_t>();
      if (!dataset.class_names.empty()) json["classes"] = dataset.class_names;
      json["confusion"] = std::vector<std::int32_t>(counts.begin(), counts.end());
    }
    std::cout << json_text(json);
    return check_finite(metrics);
  }
  std::cout << fmt::format("{}, loss {:.4f}", counted(metrics.samples, "sample"), metrics.loss);
  const auto is_there = [](const std::optional<double>& share) { return share && !std::isnan(*share); };
  if (is_there(metrics.accuracy)) std::cout << fmt::format(", accuracy {:.2f} %", 100 * *metrics.accuracy);
  if (is_there(metrics.top_k)) std::cout << fmt::format(", top-{} {:.2f} %", metrics.k, 100 * *metrics.top_k);
  for (const auto& [name, value] : metrics.named) std::cout << fmt::format(", {} {:.4g}", escaped(name), value);
  std::cout << "\n";
  if (options.confusion) std::cout << "\n" << matrix_text(dataset, matrix);
  check_finite(metrics);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Loss and accuracy of saved weights");
  const auto options = std::make_shared<EvaluateArguments>();
  command->add_option(
      "words", options->words,
      "[NETWORK] WEIGHTS [DATA]: weights that `concord train` wrote (net.safetensors), behind a network "
      "if they do not name theirs, or an ONNX file with its own; and what --data takes");
  options->saved.add(*command);
  options->device.add(*command);
  options->precision.add(*command);
  options->batch = command->add_option("--batch", options->evaluate.batch, "Samples per batch")
                       ->capture_default_str()
                       ->check(count());
  options->top =
      command->add_option("--top", options->evaluate.k, "The k of the top-k accuracy, at most the number of classes")
          ->capture_default_str()
          ->check(count());
  command->add_flag("--confusion", options->confusion, "Count predictions by label");
  options->trace.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    InputFiles inputs;
    inputs.add(options->saved.weights).add_data(options->saved.data.text);
    for (const std::string& word : options->words) inputs.add_data(word);
    options->trace.around(inputs, [&] { run_evaluate(*options); });
  });
}

}  // namespace concord::cli
