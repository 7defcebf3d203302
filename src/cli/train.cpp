// concord train: a network of the zoo on a data set; Ctrl-C stops after the step and leaves a whole checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "concord/cli/counted.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/first_rank.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/label_metrics.hpp"
#include "concord/cli/launch.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/parallel.hpp"
#include "concord/cli/rescue.hpp"
#include "concord/cli/train_data.hpp"
#include "concord/cli/training_recipe.hpp"
#include "concord/cli/validation.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/checkpoint.hpp"

namespace concord::cli {
namespace {

struct TrainArguments {
  TrainingRecipe recipe;
  DeviceOption device;
  RanksOptions ranks;
  SharingOptions sharing;
  TraceOption trace;
  PermitOption permit;
  ValidationOptions validation;
  std::string resume, weights, out, checkpoint, log;
  const CLI::Option* seed_option = nullptr;
  bool quiet = false;
  bool json = false;
};

std::string text_of(const Metrics& metrics) {
  std::string text = fmt::format("loss {:.4f}", metrics.loss);
  if (metrics.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *metrics.accuracy);
  for (const auto& [name, value] : metrics.named) text += fmt::format(", {} {:.4g}", escaped(name), value);
  return fmt::format("{}, {}", text, counted(metrics.samples, "sample"));
}

nlohmann::json json_of(const Metrics& metrics) {
  nlohmann::json json{{"loss", metrics.loss}, {"samples", metrics.samples}};
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (!metrics.named.empty()) json["metrics"] = metrics.named;
  return json;
}

/// A training that goes on has the seed that it began with, for random data too.
void follow_seed(TrainArguments& options) {
  const std::uint64_t seed = io::load_checkpoint_info(options.resume).seed;
  if (options.seed_option->count() > 0 && options.recipe.training.seed != seed) {
    log(LogLevel::warning, fmt::format("--seed {} is ignored: {} was started with seed {} and continues with it",
                                       options.recipe.training.seed, options.resume, seed));
  }
  options.recipe.training.seed = seed;
}

/// ", 200 more held out for validation", or ", 200 for validation".
std::string text_of_parts(const TrainData& data) {
  std::string text;
  if (data.held_out > 0) {
    text = fmt::format(", {} more held out for validation", data.held_out);
  } else if (data.validation) {
    text = fmt::format(", {} for validation", data.validation->size());
  }
  return text;
}

Trained trained_before(const TrainArguments& options) {
  if (!options.resume.empty()) return Trained::of(options.resume);
  if (options.weights.empty()) return {};
  Trained trained = Trained::of(options.weights);
  if (options.permit.patterns.empty()) return trained;
  trained.classes = 0;
  if (trained.preprocessing) trained.preprocessing->class_names.clear();
  trained.table.reset();
  return trained;
}

/// The files of a training. Each is saved in a second place if the first has no room.
class Files {
 public:
  Files(const TrainArguments& options, const Trainer& trainer) : options_(options), trainer_(trainer) {}

  void save_weights(const std::string& what) const {
    if (options_.out.empty()) return;
    save_somewhere(what, options_.out, [&](const std::filesystem::path& file) { trainer_.save(file); });
    if (is_first()) say(fmt::format("{} are in {}", what, options_.out));
  }

  /// Saves the weights and the checkpoint after a failed training. Prints a message for each file that cannot be
  /// written.
  void save_what_there_is(const std::string& weights) const {
    if (trainer_.steps_done() == 0) return;
    const auto attempt = [](const auto& save) {
      try {
        save();
      } catch (const Error& error) {  // the training's own error is the one that is thrown on
        say(error.what());
      }
    };
    attempt([&] { save_weights(weights); });
    if (options_.checkpoint.empty()) return;
    attempt([&] {
      save_somewhere("the weights and the optimizer's state", options_.checkpoint,
                     [&](const std::filesystem::path& file) { trainer_.save_checkpoint(file); });
    });
  }

 private:
  const TrainArguments& options_;
  const Trainer& trainer_;
};

/// In batches of the training where the device has no memory for larger ones.
Metrics evaluated(Trainer& trainer, const Samples& samples, const FitOptions& fit, const NamedMetrics& metrics) {
  EvaluateOptions how;
  how.bad_samples = fit.bad_samples;
  how.metrics = metrics;
  try {
    return trainer.evaluate(samples, how);
  } catch (const OutOfMemory&) {
    how.batch = fit.batch;
  }
  return trainer.evaluate(samples, how);
}

Metrics tested(Trainer& trainer, const Samples& test, const FitOptions& fit, const Trained& trained) {
  const LabelMetrics label_metrics(test, trained.table);
  Metrics metrics = evaluated(trainer, test, fit, label_metrics.parts());
  label_metrics.join(metrics.named);
  return metrics;
}

/// The epoch whose weights the trainer has: the best one where it was restored, else the last; null if this fit did not
/// train it.
const EpochReport* report_of_weights(const History& history) {
  const bool is_restored = history.best_epoch > 0 && history.end != History::End::stopped;
  if (!is_restored) return history.epochs.empty() ? nullptr : &history.epochs.back();
  const auto found = std::ranges::find(history.epochs, history.best_epoch, &EpochReport::epoch);
  return found == history.epochs.end() ? nullptr : &*found;
}

/// Of the trainer's weights. Of those of an epoch before a resume it is computed again.
std::optional<Metrics> validation_of(Trainer& trainer, const History& history, const FitOptions& fit) {
  if (const EpochReport* const report = report_of_weights(history)) return report->validation;
  if (history.best_epoch == 0 || history.end == History::End::stopped || !fit.validate) return {};
  return evaluated(trainer, *fit.validate, fit, fit.metrics);
}

void say_resumed(const TrainArguments& options, const Trainer& trainer) {
  say(fmt::format("resumed from {} after {}", options.resume, counted(trainer.steps_done(), "step")));
  if (trainer.epochs_done() < options.recipe.fit.epochs) return;
  say(fmt::format("this training is finished: it has done {} of {}; a larger --epochs continues it",
                  trainer.epochs_done(), counted(options.recipe.fit.epochs, "epoch")));
}

/// `validation`: that of the trainer's weights, if there is one.
nlohmann::json json_of(const TrainArguments& options, const Trainer& trainer, const History& history,
                       const std::optional<Metrics>& validation) {
  constexpr std::array kEnds{"finished", "stopped", "early"};
  nlohmann::json json{
      {"model", options.recipe.training.model}, {"data", options.recipe.data.text},
      {"device", trainer.device().info().id},   {"devices", trainer.ranks()},
      {"seed", options.recipe.training.seed},   {"steps", trainer.steps_done()},
      {"epochs", trainer.epochs_done()},        {"end", kEnds.at(static_cast<std::size_t>(history.end))}};
  if (const EpochReport* const report = report_of_weights(history)) {
    json["train"] = {{"loss", report->loss}, {"samples_per_second", report->samples_per_second}};
  }
  if (validation) json["validation"] = json_of(*validation);
  if (history.best_epoch > 0) json["best_epoch"] = history.best_epoch;
  return json;
}

InputFiles data_and_model(const TrainArguments& options) {
  return InputFiles().add_data(options.recipe.data.text).add(options.recipe.training.model);
}

/// What can be refused before the ranks are started.
void check(const TrainArguments& options) {
  require_safetensors_name("--out", options.out);
  for (const std::string& file : {options.out, options.checkpoint}) require_writable(file);
  require_appendable(options.log);
  require_different({{"--out", options.out},
                     {"--checkpoint", options.checkpoint},
                     {"--log", options.log},
                     {"--trace", options.trace.file}});
  data_and_model(options).require_kept(
      {{"--out", options.out}, {"--checkpoint", options.checkpoint}, {"--log", options.log}});
  // A training may go on in its checkpoint, and replace the weights that it starts with.
  InputFiles().add(options.resume).require_kept({{"--out", options.out}, {"--log", options.log}});
  InputFiles().add(options.weights).require_kept({{"--checkpoint", options.checkpoint}, {"--log", options.log}});
  static_cast<void>(options.permit.get());
  options.permit.require_weights(options.weights);
  if (options.resume.empty()) options.validation.check();
  if (!options.weights.empty()) static_cast<void>(weights::File(options.weights));  // before the data is read
  static_cast<void>(find_model(options.recipe.training.model));
  const DevicesOption& devices = options.ranks.devices;
  options.sharing.check(devices.selectors.empty() ? 0 : devices.devices().size(), options.ranks.have_nodes(),
                        options.recipe.accumulate);
}

void run_train(TrainArguments& options) {
  const io::LoadOptions permitted = options.permit.get();
  const models::Model& model = find_model(options.recipe.training.model);
  const collective::GroupPtr group = collective::group_of_process();
  if (!options.resume.empty()) {
    follow_seed(options);
    options.validation.follow(options.resume);
    options.validation.check();
  }
  const TrainingRecipe& recipe = options.recipe;
  FitOptions fit = recipe.fit_options();
  const TrainData data = open_train_data(recipe, options.validation, trained_before(options), model);
  fit.validate = data.validation;
  if (fit.validate && data.trained.table) fit.metrics = errors_of_targets(*data.trained.table);
  if (!fit.validate) recipe.check_without_validation();
  const DevicePtr device = options.device.open();
  recipe.precision.warn_of(device->info());
  if (is_first()) {
    const std::string more = group ? fmt::format(" and {} more", group->size() - 1) : "";
    say(fmt::format("{} on {}{}, {}: {}{}", model.name, device->info().name, more, data.train->name,
                    counted(data.train->size(), "sample"), text_of_parts(data)));
  }

  if (is_first() && options.out.empty() && options.checkpoint.empty()) {
    say("the weights are not saved: set --out or --checkpoint");
  }
  const std::shared_ptr<nn::Module> network = data.network;
  TrainerOptions how = recipe.trainer_options(model, *data.train, *network);
  how.evaluation = data.evaluation;
  options.sharing.apply(how);
  how.metadata = data.trained.metadata();
  how.metadata.merge(options.validation.metadata());
  Trainer trainer(network, data.objective, recipe.training.make_optimizer(), device, how);
  if (!options.weights.empty()) {
    trainer.load(options.weights, permitted);
    trainer.prepare(*data.train);
    say(fmt::format("starts with the weights of {}", options.weights));
  }
  if (!options.resume.empty()) {
    trainer.resume(options.resume);
    if (is_first()) say_resumed(options, trainer);
  }

  fit.checkpoint = options.checkpoint;
  const auto report_by = [&](std::shared_ptr<Callback> callback) {
    fit.callbacks.push_back(std::make_shared<FirstRankReports>(std::move(callback)));
  };
  if (!options.quiet) report_by(std::make_shared<ProgressPrinter>(std::cerr));
  std::shared_ptr<JsonLog> log;
  if (!options.log.empty()) report_by(log = std::make_shared<JsonLog>(options.log));
  catch_signals();
  fit.stop = stop_requested;
  const Files files(options, trainer);
  const History history = [&] {
    try {
      return trainer.fit(*data.train, fit);
    } catch (const NonFinite&) {
      files.save_what_there_is("the last good weights");
      throw;
    } catch (const RankLost&) {
      files.save_what_there_is("the weights of the last step");
      throw;
    } catch (const IoError&) {                                        // of the log or a checkpoint
      if (how.pipeline.is_on() || how.model_parallel.is_on()) throw;  // the others may not know of it
      files.save_what_there_is("the weights so far");
      throw;
    }
  }();
  std::exception_ptr failure;  // weights that are elsewhere are tested all the same
  try {
    files.save_weights("the weights");
  } catch (const IoError&) {
    failure = std::current_exception();
  }
  nlohmann::json json = json_of(options, trainer, history, validation_of(trainer, history, fit));
  std::optional<Metrics> test;
  if (data.test && !stop_requested()) {  // looked at once, and with --validate split nothing was chosen by it
    test = tested(trainer, *data.test, fit, data.trained);
    if (!options.quiet && is_first()) say("test: " + text_of(*test));
    if (log && is_first()) log->on_test(*test);
    json["test"] = json_of(*test);
  }
  if (options.json && is_first()) std::cout << json_text(json);
  if (failure) std::rethrow_exception(failure);
  if (test && !std::isfinite(test->loss)) throw NonFinite("the loss of the test set is not finite");
  if (history.end == History::End::stopped && is_first()) {
    say(fmt::format("stopped after {}{}", counted(trainer.steps_done(), "step"),
                    options.checkpoint.empty() ? "; without --checkpoint the training cannot be continued later"
                                               : "; continue with --resume " + options.checkpoint));
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network");
  const auto options = std::make_shared<TrainArguments>();
  options->recipe.training.add_model(*command);
  options->device.add(*command);
  options->ranks.add(*command);
  options->ranks.devices.option->excludes(command->get_option("--device"));
  options->sharing.add(*command);
  options->recipe.add(*command);
  options->seed_option = command->get_option("--seed");
  CLI::Option* const resume =
      command->add_option("--resume", options->resume, "Continue from this checkpoint, with its seed")
          ->check(file_name());
  command
      ->add_option("--weights", options->weights,
                   "Start with the weights of this file, of any format that evaluate reads")
      ->check(file_name())
      ->excludes(resume);
  options->permit.add(*command);
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "Write a checkpoint to this file after each epoch and when stopped")
      ->check(file_name());
  command->add_option("--out", options->out, "Write the weights to this file (safetensors)")->check(file_name());
  command->add_option("--log", options->log, "Append a JSON line per epoch to this file")->check(file_name());
  options->validation.add(*command);
  options->trace.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->add_flag("--json", options->json, "Print the final metrics as JSON");
  command->callback([options] {
    check(*options);
    if (const std::string own = options->ranks.device_of_rank(); !own.empty()) options->device.selector = own;
    const std::optional<collective::World> world = world_of_rank(options->ranks.have_nodes());
    options->trace.around(
        data_and_model(*options).add(options->resume).add(options->weights), [&] { run_train(*options); },
        world ? world->rank : 0);
  });
}

}  // namespace concord::cli
