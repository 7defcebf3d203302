// concord predict: the likeliest classes of images in files, or of samples of a data set.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>
#include <numeric>

#include "concord/cli/dataset.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/predict/prediction.hpp"
#include "concord/cli/predict/read_rows.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/core/check.hpp"
#include "concord/data/selection.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::cli {
namespace {

struct PredictArguments {
  std::string model;                // or a file of weights that names its network
  std::vector<std::string> images;  // files and folders
  DeviceOption device;
  PrecisionOption precision;
  TraceOption trace;
  std::string weights, split = "test";
  DataOptions data;
  PermitOption permit;
  std::string out, format = "table";
  std::int64_t first = 0, count = 10, batch = 256;
  std::size_t top = 1;
  bool json = false;
  const CLI::Option* count_option = nullptr;

  [[nodiscard]] bool is_counted() const { return count_option->count() > 0; }
};

/// What is asked for, once it is known which word is the network and which the weights.
struct Task {
  std::string weights;
  Trained trained;
  const models::Model* model = nullptr;
};

bool is_weights(const std::string& word) {
  return std::ranges::any_of(std::array{".safetensors", ".pt", ".pth"},
                             [&](const char* e) { return word.ends_with(e); });
}

Task task_of(const PredictArguments& options) {
  Task task;
  task.weights = options.weights;
  if (task.weights.empty()) {
    CONCORD_CHECK(is_weights(options.model), ArgumentError,
                  "predict needs weights: `concord predict net.safetensors photo.jpg`, or --weights with a network");
    task.weights = options.model;
  }
  task.trained = Trained::of(task.weights);
  const bool is_named = !options.weights.empty();
  CONCORD_CHECK(is_named || !task.trained.network.empty(), ArgumentError,
                "{} does not say what network it is of: use `concord predict NETWORK --weights {}`", task.weights,
                task.weights);
  task.model = &find_model(is_named ? options.model : task.trained.network);
  CONCORD_CHECK(task.model->task == models::Task::classification || task.model->task == models::Task::language,
                ArgumentError, "predict needs a network for classes or words; {} is a network for {}", task.model->name,
                models::name_of(task.model->task));
  return task;
}

Trainer trainer_for(const PredictArguments& options, const Task& task, std::shared_ptr<nn::Module> network) {
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  Trainer trainer(std::move(network), objective_of(*task.model), optim::Sgd{}, device,
                  {.precision = options.precision.get()});
  trainer.load(task.weights, options.permit.get());
  return trainer;
}

/// The classes of each row of outputs; of a sequence, of what comes after its end.
void add_predictions(const Tensor& outputs, std::size_t top, const std::vector<Prediction*>& to) {
  const auto classes = static_cast<std::size_t>(outputs.shape()[-1]);
  const std::size_t places = static_cast<std::size_t>(outputs.elements()) / to.size() / classes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i]->classes = likeliest(outputs.values<float>().subspan(((i + 1) * places - 1) * classes, classes), top);
  }
}

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

struct Results {
  std::vector<Prediction> predictions;
  std::vector<std::string> names;
  Tensor outputs;  // of those that have been predicted
};

/// Images in files; one that cannot be read has an error instead of classes.
Results predict_images(const PredictArguments& options, const Task& task) {
  DataOptions data = options.data;
  data.text = "folder:.";  // how images are prepared does not depend on the folder
  const DataSource source(data, *task.model, 1, task.trained);
  const SharedSamples images =
      data::image_files({options.images.begin(), options.images.end()}).with(*source.transform());
  Trainer trainer = trainer_for(options, task, source.network_for_images());
  Results results;
  if (task.trained.preprocessing) results.names = task.trained.preprocessing->class_names;
  std::vector<Tensor> outputs;
  for (std::int64_t row = 0; row < images->size();) {
    std::vector<std::int32_t> rows;
    for (; row < images->size() && std::ssize(rows) < options.batch; ++row) {
      rows.push_back(static_cast<std::int32_t>(row));
    }
    const RowsRead read = read_in_parallel(*images, rows);
    std::vector<std::size_t> good;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (read.errors[i].empty()) good.push_back(results.predictions.size());
      results.predictions.push_back({images->name_of(rows[i]), {}, {}, read.errors[i]});
    }
    if (good.empty()) continue;
    outputs.push_back(trainer.predict(read.dataset, options.batch));
    std::vector<Prediction*> to;
    for (const std::size_t i : good) to.push_back(&results.predictions[i]);
    add_predictions(outputs.back(), options.top, to);
  }
  if (!outputs.empty()) results.outputs = joined_rows(outputs);
  return results;
}

std::vector<std::string> class_names_of(const DataSource& source, const Samples& samples) {
  if (!samples.class_names.empty()) return samples.class_names;
  const std::optional<data::CsvEncoding> table = source.trained(samples).table;
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

Results predict_samples(const PredictArguments& options, const Task& task) {
  DataSource source(options.data, *task.model, 1, task.trained);
  const SharedSamples all = source.evaluated(options.split);
  CONCORD_CHECK(options.first < all->size(), ArgumentError, "--first {}: there are {} samples, the first is 0",
                options.first, all->size());
  const std::int64_t count = std::min(options.count, all->size() - options.first);
  if (count < options.count && options.is_counted()) {
    log(LogLevel::warning, fmt::format("--first {} --count {}: there are {} samples, so {} are predicted",
                                       options.first, options.count, all->size(), count));
  }
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(options.first));
  Trainer trainer = trainer_for(options, task, source.network_for(*all));
  const Dataset samples = data::read_rows(*all, rows);
  Results results;
  results.names = class_names_of(source, *all);
  results.outputs = trainer.predict(samples, options.batch);
  for (std::int64_t i = 0; i < count; ++i) {
    results.predictions.push_back({fmt::format("{}", options.first + i), {}, label_of(samples, i), {}});
  }
  if (const std::vector<std::string> targets = targets_of(source, samples); !targets.empty()) {
    results.names = targets;
    const std::size_t width = targets.size();
    for (std::size_t i = 0; i < results.predictions.size(); ++i) {
      const auto row = results.outputs.values<float>().subspan(i * width, width);
      results.predictions[i].numbers.assign(row.begin(), row.end());
    }
    return results;
  }
  std::vector<Prediction*> to;
  for (Prediction& prediction : results.predictions) to.push_back(&prediction);
  add_predictions(results.outputs, options.top, to);
  return results;
}

void run_predict(const PredictArguments& options) {
  require_writable(options.out);
  CONCORD_CHECK(options.images.empty() != options.data.text.empty(), ArgumentError,
                "predict needs files of images, or --data with a data set, and not both");
  CONCORD_CHECK(!options.json || options.format == "table" || options.format == "json", ArgumentError,
                "--json contradicts --format {}", options.format);
  const Task task = task_of(options);
  const Results results = options.images.empty() ? predict_samples(options, task) : predict_images(options, task);
  if (!options.out.empty() && results.outputs.elements() > 0) {
    io::write_safetensors(options.out, {{"outputs", results.outputs}});
  }
  const std::string format = options.json ? "json" : options.format;
  auto* const text = format == "json" ? prediction_json : format == "csv" ? prediction_csv : prediction_table;
  std::cout << text(results.predictions, results.names);
  const auto failed = std::ranges::count_if(results.predictions, [](const Prediction& p) { return !p.error.empty(); });
  if (failed > 0) {
    throw FormatError(fmt::format("{} of {} images could not be read", failed, results.predictions.size()));
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "predict", "Predict classes of images, or of samples of a data set; of text, the next character");
  const auto options = std::make_shared<PredictArguments>();
  command
      ->add_option("model", options->model,
                   "Weights that `concord train` wrote (.safetensors), or with --weights the network, as in `concord "
                   "train`")
      ->required();
  command->add_option("images", options->images, "Files of images, and folders of them")->check(file_name());
  command
      ->add_option("--weights", options->weights,
                   "Weights or checkpoint of the network: safetensors, PyTorch, Keras or Caffe")
      ->check(file_name());
  options->permit.add(*command);
  options->data.add(*command, command->add_option("--data", options->data.text, kDataHelp));
  command->add_option("--split", options->split, "The part of the data")
      ->capture_default_str()
      ->check(CLI::IsMember({"train", "validation", "test"}));
  command->add_option("--first", options->first, "The first sample")
      ->capture_default_str()
      ->check(whole(0, std::numeric_limits<std::int32_t>::max()));
  options->count_option =
      command->add_option("--count", options->count, "Number of samples")->capture_default_str()->check(count());
  command->add_option("--top", options->top, "Classes that are named for each sample, the likeliest first")
      ->capture_default_str()
      ->check(count());
  command->add_option("--batch", options->batch, "Samples per batch")->capture_default_str()->check(count());
  options->device.add(*command);
  options->precision.add(*command);
  command->add_option("--out", options->out, "Write the outputs of the network to this file (safetensors, \"outputs\")")
      ->check(file_name());
  options->trace.add(*command);
  command->add_option("--format", options->format, "table, csv or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "csv", "json"}));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { options->trace.around([&] { run_predict(*options); }); });
}

}  // namespace concord::cli
