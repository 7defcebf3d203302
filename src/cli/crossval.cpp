// concord crossval: networks trained and evaluated on each fold of one data set.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "concord/cli/counted.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/training_recipe.hpp"
#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/text.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/data/selection.hpp"

namespace concord::cli {
namespace {

struct CrossvalArguments {
  TrainingRecipe recipe;
  DeviceOption device;
  TraceOption trace;
  int folds = 5;
  std::uint64_t fold_seed = 0;
  std::string logs, out;
  bool quiet = false;
  bool json = false;
};

/// A network and its folds.
struct Row {
  std::string network;
  std::vector<FoldResult> folds;
  double seconds = 0;

  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> all;
    for (const FoldResult& fold : folds) all.push_back(fold.metrics.loss);
    return all;
  }
  /// Of the evaluation of each fold. Empty if the network has no such metric.
  [[nodiscard]] std::vector<double> named(const std::string& metric) const {
    std::vector<double> all;
    for (const FoldResult& fold : folds) {
      const auto found = fold.metrics.named.find(metric);
      if (found != fold.metrics.named.end()) all.push_back(found->second);
    }
    return all;
  }
  /// Empty where the labels are no classes.
  [[nodiscard]] std::vector<double> accuracies() const {
    std::vector<double> all;
    for (const FoldResult& fold : folds) {
      if (fold.metrics.accuracy) all.push_back(*fold.metrics.accuracy);
    }
    return all;
  }
};

/// Of several labels, the names of their accuracies, in any of the rows.
std::set<std::string> accuracy_names(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.folds.empty()) continue;
    for (const auto& [name, value] : row.folds[0].metrics.named) {
      if (name.ends_with(".accuracy")) names.insert(name);
    }
  }
  return names;
}

/// Rows with each class in its share, where a sample has one class.
std::vector<std::vector<std::int32_t>> make_folds(const Samples& samples, int k, std::uint64_t seed) {
  std::vector<std::int32_t> labels;
  for (std::int64_t row = 0; row < samples.size(); ++row) {
    const auto label = samples.class_of(row);
    if (!label) return data::folds(samples.size(), k, seed);
    labels.push_back(*label);
  }
  return data::folds(labels, k, seed);
}

std::string file_of_fold(const std::string& folder, const std::string& network, int fold, const char* extension) {
  std::string name = network;
  for (char& c : name) {
    if (c == '/' || c == ':') c = '-';
  }
  return (std::filesystem::path(folder) / fmt::format("{}-fold{}{}", name, fold + 1, extension)).string();
}

void require_folder(const std::string& folder) {
  if (!folder.empty()) std::filesystem::create_directories(folder);
}

/// MODEL+MODEL…
std::vector<std::string> network_names(const std::string& text) {
  std::vector<std::string> names = split(text, '+');
  for (const std::string& name : names) static_cast<void>(find_model(name));
  return names;
}

/// The bytes of the data set that went to devices.
std::size_t uploaded_bytes(const Samples& samples) {
  const Dataset* const dataset = data::dataset_of(samples);
  if (dataset == nullptr) return 0;
  const std::lock_guard lock(dataset->device_copies->mutex);
  return dataset->device_copies->uploaded_bytes;
}

Row cross_validate_network(const CrossvalArguments& options, const std::string& name, const DevicePtr& device,
                           const SharedSamples& samples, const SharedSamples& plain, DataSource& source,
                           const std::vector<std::vector<std::int32_t>>& folds, std::size_t& uploaded) {
  const TrainingRecipe& recipe = options.recipe;
  const models::Model& model = find_model(name);
  FoldSamples of_fold{samples, plain};
  std::vector<std::int32_t> training_rows;
  const auto samples_for = [&](int, std::span<const std::int32_t> rows) {
    training_rows.assign(rows.begin(), rows.end());
    if (source.is_fitted()) {
      const SharedSamples fitted = source.fitted(rows);
      of_fold = {fitted, fitted};
    }
    return of_fold;
  };
  const auto make = [&](int fold) {
    const Samples& own = *of_fold.samples;
    const std::shared_ptr<nn::Module> network = source.make(recipe.variant(source, own));
    TrainerOptions how = recipe.trainer_options(model, own, *network);
    how.metadata = source.trained(own).metadata();
    how.seed += static_cast<std::uint64_t>(fold);
    // Samples of the fold count in no weight of a class.
    how.evaluation = recipe.evaluation(source, own);
    const Objective objective = recipe.objective(source, data::Selection(of_fold.samples, training_rows), model);
    return Trainer(network, objective, recipe.training.make_optimizer(), device, how);
  };
  FitOptions fit = recipe.fit_options();
  fit.stop = stop_requested;
  const auto options_of = [&](int fold, FitOptions& own) {
    if (!options.quiet) {
      say(fmt::format("{}, fold {} of {}", name, fold + 1, folds.size()));
      own.callbacks.push_back(std::make_shared<ProgressPrinter>(std::cerr));
    }
    if (!options.logs.empty()) {
      const std::string log = file_of_fold(options.logs, name, fold, ".jsonl");
      static_cast<void>(std::ofstream(log, std::ios::trunc));  // a log is appended to
      own.callbacks.push_back(std::make_shared<JsonLog>(log));
    }
  };
  const auto done = [&](int fold, const FoldResult&, const Trainer& trainer) {
    if (!options.out.empty()) trainer.save(file_of_fold(options.out, name, fold, ".safetensors"));
    if (source.is_fitted()) uploaded += uploaded_bytes(*of_fold.samples);
  };
  Row row{name, cross_validate(make, samples_for, folds, fit, options_of, done)};
  for (const FoldResult& fold : row.folds) row.seconds += fold.seconds;
  return row;
}

std::string mean_text(const std::vector<double>& values, double unit, int digits) {
  if (values.empty()) return "-";
  const FoldStatistics s = statistics_of(values);
  return fmt::format("{:.{}f} ± {:.{}f}", unit * s.mean, digits, unit * s.deviation, digits);
}

/// The first fold that was not trained to its end, or nothing.
std::string interruption_of(const std::vector<Row>& rows, std::size_t folds) {
  for (const Row& row : rows) {
    if (row.folds.size() < folds) {
      return fmt::format("interrupted in fold {} of {} of {}, which does not count", row.folds.size() + 1, folds,
                         row.network);
    }
  }
  return {};
}

/// A column that some networks have no number for has "-" there. The folds of each network are its accuracies, or else
/// its losses.
std::string table_of(const std::vector<Row>& rows, std::size_t folds) {
  const bool has_accuracy = std::ranges::any_of(rows, [](const Row& row) { return !row.accuracies().empty(); });
  const std::set<std::string> named = accuracy_names(rows);
  std::vector<std::vector<std::string>> cells{{"network"}};
  if (has_accuracy) cells[0].push_back("accuracy %");
  for (const std::string& name : named) cells[0].push_back(name + " %");
  cells[0].push_back("loss");
  for (std::size_t f = 0; f < folds; ++f) cells[0].push_back(fmt::format("fold {}", f + 1));
  cells[0].push_back("seconds");
  for (const Row& row : rows) {
    std::vector<std::string>& line = cells.emplace_back();
    line = {row.network};
    if (has_accuracy) line.push_back(mean_text(row.accuracies(), 100, 2));
    for (const std::string& name : named) line.push_back(mean_text(row.named(name), 100, 2));
    line.push_back(mean_text(row.losses(), 1, 4));
    for (std::size_t f = 0; f < folds; ++f) {
      if (f >= row.folds.size()) {
        line.emplace_back("-");
        continue;
      }
      const Metrics& metrics = row.folds[f].metrics;
      line.push_back(metrics.accuracy ? fmt::format("{:.2f}", 100 * *metrics.accuracy)
                                      : fmt::format("{:.4f}", metrics.loss));
    }
    line.push_back(fmt::format("{:.1f}", row.seconds));
  }
  return table(cells);
}

/// Mean and deviation, null where no fold was finished, and the folds.
nlohmann::json json_of(const std::vector<double>& folds) {
  nlohmann::json json{{"mean", nullptr}, {"deviation", nullptr}, {"folds", folds}};
  if (folds.empty()) return json;
  const FoldStatistics statistics = statistics_of(folds);
  json["mean"] = statistics.mean;
  json["deviation"] = statistics.deviation;
  return json;
}

nlohmann::json json_of(const std::vector<Row>& rows, std::size_t uploaded) {
  nlohmann::json networks = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json json{{"network", row.network}, {"loss", json_of(row.losses())}, {"seconds", row.seconds}};
    if (const std::vector<double> values = row.accuracies(); !values.empty()) json["accuracy"] = json_of(values);
    for (const auto& [name, value] : row.folds.empty() ? std::map<std::string, double>() : row.folds[0].metrics.named) {
      json["metrics"][name] = json_of(row.named(name));
    }
    networks.push_back(std::move(json));
  }
  return {{"networks", networks}, {"uploaded_bytes", uploaded}};
}

/// A fold that ends a training early, or lowers its rate, would no longer be new to the network that it scores.
void check_looks_at_no_fold(const TrainingRecipe& recipe) {
  const bool reads_losses = recipe.fit_options().schedule.reads_losses();
  CONCORD_CHECK(
      recipe.patience == 0 && !reads_losses, ArgumentError,
      "{} watches validation losses, and crossval has none but those of the fold that scores the network: use "
      "a fixed number of --epochs{}",
      recipe.patience > 0 ? "--patience" : "--schedule plateau", recipe.patience > 0 ? "" : " and another schedule");
}

void run_crossval(const CrossvalArguments& options) {
  check_looks_at_no_fold(options.recipe);
  require_folder(options.logs);
  require_folder(options.out);
  const TrainingRecipe& recipe = options.recipe;
  const std::vector<std::string> names = network_names(recipe.training.model);
  const DevicePtr device = options.device.open();
  recipe.precision.warn_of(device->info());
  catch_signals();
  std::vector<Row> rows;
  // Networks that take samples of one kind share them.
  SharedSamples samples, plain;
  std::vector<std::vector<std::int32_t>> folds;
  std::size_t uploaded = 0;
  for (const std::string& name : names) {
    DataSource source(recipe.data_options(), find_model(name), recipe.training.seed);
    if (!samples || source.depends_on_network()) {
      if (samples) uploaded += uploaded_bytes(*samples);
      samples = source.augmented("train", data::parse_augment(recipe.augment));
      plain = recipe.augment == "none" ? samples : source.part("train");
      folds = make_folds(*plain, options.folds, options.fold_seed);
      say(fmt::format("{} on {}: {} samples in {} folds", samples->name, device->info().name, samples->size(),
                      folds.size()));
    }
    rows.push_back(cross_validate_network(options, name, device, samples, plain, source, folds, uploaded));
    if (stop_requested()) break;
  }
  uploaded += uploaded_bytes(*samples);
  const std::string interruption = interruption_of(rows, folds.size());
  std::size_t trainings = interruption.empty() ? 0 : 1;
  for (const Row& row : rows) trainings += row.folds.size();
  if (options.json) {
    nlohmann::json json = json_of(rows, uploaded);
    json["is_interrupted"] = !interruption.empty();
    std::cout << json_text(json);
  } else {
    std::cout << table_of(rows, folds.size());
    if (uploaded > 0) {
      std::cout << fmt::format("{} of data were uploaded for {}\n", human_bytes(uploaded),
                               counted(trainings, "training"));
    }
  }
  if (!interruption.empty()) say(interruption);
}

}  // namespace

void add_crossval(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crossval", "Train and evaluate networks on each fold of a data set");
  const auto options = std::make_shared<CrossvalArguments>();
  options->recipe.training.add_model(*command, "; several with + between: lenet+mlp");
  options->recipe.add(*command);
  command->get_option("--patience")->description("Refused: the fold that it would watch scores the network");
  CLI::Option* const schedule = command->get_option("--schedule");
  schedule->description(schedule->get_description() +
                        ". Not plateau, which would watch the fold that scores the network");
  options->device.add(*command);
  command->add_option("--folds", options->folds, "Number of folds, each with every class in its share")
      ->capture_default_str()
      ->check(whole(2, 1000));
  command->add_option("--fold-seed", options->fold_seed, "Deals the samples to folds")
      ->capture_default_str()
      ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
  command->add_option("--logs", options->logs, "Write a JSON log of each fold to this folder")->check(file_name());
  command->add_option("--out", options->out, "Write the weights of each fold to this folder (safetensors)")
      ->check(file_name());
  options->trace.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->add_flag("--json", options->json, "Print the table as JSON");
  command->callback([options] {
    InputFiles inputs;
    inputs.add_data(options->recipe.data.text);
    for (const std::string& network : network_names(options->recipe.training.model)) inputs.add(network);
    options->trace.around(inputs, [&] { run_crossval(*options); });
  });
}

}  // namespace concord::cli
