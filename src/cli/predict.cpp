// concord predict: the output of saved weights for single samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "concord/cli/dataset.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::cli {
namespace {

struct PredictArguments {
  TrainingOptions training;
  DeviceOption device;
  PrecisionOption precision;
  TraceOption trace;
  SavedModelOptions saved;
  std::string out;
  std::int64_t first = 0, count = 10, batch = 256;
  bool json = false;
  const CLI::Option* count_option = nullptr;

  [[nodiscard]] bool is_counted() const { return count_option->count() > 0; }
};

struct Prediction {
  std::size_t best = 0;
  double probability = 0;
};

Prediction best_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*best));
  return {static_cast<std::size_t>(best - logits.begin()), 1 / sum};
}

void run_predict(const PredictArguments& options) {
  const models::Model& model = find_model(options.training.model);
  if (model.task != models::Task::classification && model.task != models::Task::language) {
    throw ArgumentError(fmt::format("predict needs a network for classes or words; {} is a network for {}", model.name,
                                    models::name_of(model.task)));
  }
  require_writable(options.out);
  const Dataset all =
      open_dataset(options.saved.data, options.saved.split, model, 1, saved_alphabet(options.saved.weights));
  if (options.first >= all.size()) {
    throw ArgumentError(fmt::format("--first {}: there are {} samples, the first is 0", options.first, all.size()));
  }
  const std::int64_t count = std::min(options.count, all.size() - options.first);
  if (count < options.count && options.is_counted()) {
    log(LogLevel::warning, fmt::format("--first {} --count {}: there are {} samples, so {} are predicted",
                                       options.first, options.count, all.size(), count));
  }
  const Dataset samples = data::slice(all, options.first, count);
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  Trainer trainer(network_for(model, all), objective_of(model), optim::Sgd{}, device,
                  {.precision = options.precision.get()});
  trainer.load(options.saved.weights, options.saved.permit.get());
  const Tensor outputs = trainer.predict(samples, options.batch);
  if (!options.out.empty()) io::write_safetensors(options.out, {{"outputs", outputs}});

  const auto name = [&](std::size_t c) {
    return c < all.class_names.size() ? all.class_names[c] : fmt::format("{}", c);
  };
  // Of a sequence, what comes after its end.
  const auto classes = static_cast<std::size_t>(outputs.shape()[-1]);
  const auto places = static_cast<std::size_t>(outputs.elements() / samples.size()) / classes;
  std::vector<std::vector<std::string>> rows{{"sample", "predicted", "probability", "label", ""}};
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    const std::size_t last = (static_cast<std::size_t>(i) + 1) * places - 1;
    const Prediction prediction = best_of(outputs.values<float>().subspan(last * classes, classes));
    const auto label = static_cast<std::size_t>(samples.labels.values<std::int32_t>()[last]);
    rows.push_back({fmt::format("{}", options.first + i), name(prediction.best),
                    fmt::format("{:.4f}", prediction.probability), name(label),
                    prediction.best == label ? "" : "wrong"});
    json.push_back({{"sample", options.first + i},
                    {"predicted", prediction.best},
                    {"name", name(prediction.best)},
                    {"probability", prediction.probability},
                    {"label", label}});
  }
  std::cout << (options.json ? json_text(json) : table(rows));
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("predict", "Predict classes of samples with saved weights; of text, the next character");
  const auto options = std::make_shared<PredictArguments>();
  options->training.add_model(*command);
  options->saved.add(*command);
  command->add_option("--first", options->first, "The first sample")
      ->capture_default_str()
      ->check(whole(0, std::numeric_limits<std::int32_t>::max()));
  options->count_option =
      command->add_option("--count", options->count, "Number of samples")->capture_default_str()->check(count());
  command->add_option("--batch", options->batch, "Samples per batch")->capture_default_str()->check(count());
  options->device.add(*command);
  options->precision.add(*command);
  command->add_option("--out", options->out, "Write the outputs of the network to this file (safetensors, \"outputs\")")
      ->check(file_name());
  options->trace.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { options->trace.around([&] { run_predict(*options); }); });
}

}  // namespace concord::cli
