// concord predict: the likeliest classes of images and rows in files, or of samples of a data set.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <utility>

#include "concord/cli/counted.hpp"
#include "concord/cli/data_spec.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/predict/contact_sheet.hpp"
#include "concord/cli/predict/pixel_classes.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/io/png.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::cli {
namespace {

/// Joins rows of outputs.
Tensor joined_rows(const std::vector<Tensor>& parts) {
  std::vector<std::int64_t> dims(parts[0].shape().dims().begin(), parts[0].shape().dims().end());
  dims[0] = 0;
  for (const Tensor& part : parts) dims[0] += part.shape()[0];
  Tensor all(parts[0].dtype(), Shape(std::move(dims)));
  auto to = all.bytes().begin();
  for (const Tensor& part : parts) to = std::ranges::copy(part.bytes(), to).out;
  return all;
}

/// Lays the classes of the pixels over the pictures that could be read.
void paint_pictures(Results& results) {
  std::size_t picture = 0;
  for (const Tensor& logits : results.outputs) {
    for (std::int64_t row = 0; row < logits.shape()[0]; ++row, ++picture) {
      while (results.pictures.at(picture).elements() == 0) ++picture;
      results.pictures[picture] = painted(results.pictures[picture], pixel_classes(logits, row));
    }
  }
}

/// `has_pixels`: the numbers are shares of pixels.
void write_sheet(const std::string& file, const Results& results, bool has_pixels) {
  constexpr std::size_t kMostNumbers = 3;
  std::vector<SheetCell> cells;
  for (std::size_t i = 0; i < results.predictions.size(); ++i) {
    const Prediction& prediction = results.predictions[i];
    SheetCell& cell = cells.emplace_back();
    cell.picture = results.pictures[i];
    if (has_pixels && !prediction.numbers.empty()) {
      cell.lines = largest_shares(prediction.numbers, 2);
      continue;
    }
    if (!prediction.numbers.empty()) {
      for (std::size_t k = 0; k < prediction.numbers.size() && k < kMostNumbers; ++k) {
        cell.lines.push_back(fmt::format("{} {:.4g}", results.names[k], prediction.numbers[k]));
      }
      continue;
    }
    if (prediction.classes.empty()) {
      cell.lines = {prediction.error.empty() ? "no class" : "no prediction"};
      continue;
    }
    const Likely& likely = prediction.classes[0];
    cell.lines = {class_name(results.names, likely.index), fmt::format("{:.1f} %", 100 * likely.probability)};
  }
  io::write_png(file, contact_sheet(cells));
  say(fmt::format("the sheet of {} is {}", counted(cells.size(), "picture"), file));
}

Results results_of(const PredictArguments& options, const SavedNetwork& saved, const std::vector<std::string>& files) {
  if (files.empty()) return predict_samples(options, saved);
  return saved.trained.table ? predict_tables(options, saved, files) : predict_files(options, saved, files);
}

/// One file of features is a data set; as of other files, all samples are predicted.
void take_array(PredictArguments& options) {
  const std::vector<std::string>& files = options.words;
  if (!options.data.text.empty() || files.size() != 1 || !lower(files[0]).ends_with(".npy")) return;
  if (files[0].find(',') != std::string::npos || std::filesystem::is_directory(files[0])) return;
  options.data.text = "npy:" + std::exchange(options.words, {})[0];
  if (!options.is_counted()) options.count = std::numeric_limits<std::int32_t>::max();
  if (options.split_option->count() == 0) options.split = "train";
}

void run_predict(PredictArguments options) {
  require_writable(options.out);
  require_writable(options.sheet);
  require_different({{"--out", options.out}, {"--sheet", options.sheet}});
  const SavedNetwork saved = take_saved_network(options.words, options.weights, options.permit, "predict");
  const bool is_data = options.data.text.empty() && options.words.size() == 1 &&
                       !std::filesystem::exists(options.words[0]) && DataSpec::names_data(options.words[0]);
  if (is_data) options.data.text = std::exchange(options.words, {})[0];
  options.data.may_lack_labels = true;
  take_array(options);
  const std::vector<std::string>& files = options.words;
  CONCORD_CHECK(files.empty() != options.data.text.empty(), ArgumentError,
                "predict needs files of images, recordings or tables, or --data with a data set, and not both");
  options.check(saved, !files.empty());
  options.batch = batch_for(saved, options.batch, *options.batch_option);
  Results results = results_of(options, saved, files);
  if (!options.out.empty() && !results.outputs.empty()) {
    io::write_safetensors(options.out, {{"outputs", joined_rows(results.outputs)}});
  }
  const std::string format = options.json ? "json" : options.format;
  auto* const text = format == "json" ? prediction_json : format == "csv" ? prediction_csv : prediction_table;
  std::cout << text(results.predictions, results.names);
  if (!options.sheet.empty()) {
    const bool has_pixels = saved.model->task == models::Task::segmentation;
    if (has_pixels) paint_pictures(results);
    write_sheet(options.sheet, results, has_pixels);
  }
  const auto failed = std::ranges::count_if(results.predictions, [](const Prediction& p) { return !p.error.empty(); });
  if (failed > 0) {
    throw FormatError(
        fmt::format("{} of {} could not be predicted", failed, counted(results.predictions.size(), results.unit)));
  }
}

}  // namespace

std::string unread_data(std::string_view kind, const std::vector<std::string>& files) {
  const bool is_plain = files[0].find(',') == std::string::npos;  // what follows a comma may be an option
  return fmt::format("{}:{}", kind, is_plain ? files[0] : ".");
}

Trainer trainer_for(const PredictArguments& options, const SavedNetwork& saved, std::shared_ptr<nn::Module> network,
                    const Objective& objective) {
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  Trainer trainer(std::move(network), objective, optim::Sgd{}, device, {.precision = options.precision.get()});
  load_weights(trainer, saved, options.permit);
  return trainer;
}

void add_predictions(const Tensor& outputs, Scores scores, std::size_t top, const std::vector<Prediction*>& to) {
  const auto classes = static_cast<std::size_t>(outputs.shape()[-1]);
  const std::size_t places = static_cast<std::size_t>(outputs.elements()) / to.size() / classes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto row = outputs.values<float>().subspan(((i + 1) * places - 1) * classes, classes);
    to[i]->classes = likeliest(row, top, scores);
  }
}

void check_sheet(const PredictArguments& options, std::int64_t pictures) {
  CONCORD_CHECK(options.sheet.empty() || pictures <= kMostSheetCells, ArgumentError,
                "--sheet shows at most {} pictures, and there are {}", kMostSheetCells, pictures);
}

Tensor picture_in(const Tensor& features, std::int64_t row, const std::string& data) {
  const Shape& shape = features.shape();
  CONCORD_CHECK(features.dtype() == DType::u8 && shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3), ArgumentError,
                "--sheet shows pictures of bytes, grey or of three colours; {} has samples {} of type {}", data,
                shape.str(), name_of(features.dtype()));
  Tensor picture(DType::u8, Shape{shape[1], shape[2], shape[3]});
  const std::size_t bytes = picture.bytes().size();
  std::ranges::copy(features.bytes().subspan(static_cast<std::size_t>(row) * bytes, bytes), picture.bytes().begin());
  return picture;
}

void add_predict(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("predict",
                         "Predict classes of images or pixels, rows of a table, or samples of a data set; of "
                         "text, what comes next; transcripts of recordings");
  const auto options = std::make_shared<PredictArguments>();
  command
      ->add_option(
          "words", options->words,
          "[NETWORK] WEIGHTS [FILE ...]: weights that `concord train` wrote (net.safetensors), behind a network "
          "if they do not name theirs, or an ONNX file with its own; and images or recordings, folders of them, or "
          "tables (FILE.csv) or an array (FILE.npy), as the weights need")
      ->check(file_name());
  command
      ->add_option("--weights", options->weights,
                   "Weights or checkpoint of the network: safetensors, PyTorch, Keras or Caffe")
      ->check(file_name());
  options->permit.add(*command);
  options->data.add(*command, command->add_option("--data", options->data.text, kDataHelp));
  options->split_option = command->add_option("--split", options->split, "The part of the data")
                              ->capture_default_str()
                              ->check(one_of({"train", "validation", "test"}));
  options->first_option = command->add_option("--first", options->first, "The first sample of --data")
                              ->capture_default_str()
                              ->check(whole(0, std::numeric_limits<std::int32_t>::max()));
  options->count_option = command->add_option("--count", options->count, "Number of samples of --data")
                              ->capture_default_str()
                              ->check(count());
  options->top_option =
      command->add_option("--top", options->top, "Classes that are named for each sample, the likeliest first")
          ->capture_default_str()
          ->check(count());
  options->batch_option =
      command->add_option("--batch", options->batch, "Samples per batch")->capture_default_str()->check(count());
  options->device.add(*command);
  options->precision.add(*command);
  command->add_option("--out", options->out, "Write the outputs of the network to this file (safetensors, \"outputs\")")
      ->check(file_name());
  command
      ->add_option("--generate", options->generate,
                   "Of text: write so many characters or tokens that follow each sample")
      ->check(count());
  command
      ->add_option("--sheet", options->sheet,
                   "Write a picture of all images as the network sees them, each with its class and probability, to "
                   "this file (PNG)")
      ->check(file_name());
  options->trace.add(*command);
  options->format_option = command->add_option("--format", options->format, "table, csv or json")
                               ->capture_default_str()
                               ->check(one_of({"table", "csv", "json"}));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    InputFiles inputs;
    inputs.add(options->weights).add_data(options->data.text);
    for (const std::string& word : options->words) inputs.add_data(word);
    inputs.require_kept({{"--out", options->out}, {"--sheet", options->sheet}});
    options->trace.around(inputs, [&] { run_predict(*options); });
  });
}

}  // namespace concord::cli
