// concord train: a network of the zoo on a data set; Ctrl-C stops after the step and leaves a whole checkpoint.
#include <fmt/format.h>

#include <array>
#include <exception>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/dataset.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/rescue.hpp"
#include "concord/cli/schedule.hpp"
#include "concord/cli/training_options.hpp"
#include "concord/core/check.hpp"
#include "concord/io/checkpoint.hpp"

namespace concord::cli {
namespace {

struct TrainArguments {
  TrainingOptions training;
  DeviceOption device;
  PrecisionOption precision;
  MemoryBudgetOption memory_budget;
  TraceOption trace;
  PermitOption permit;
  std::string data;
  ValidationOptions validation;
  std::string last_batch = "keep";
  FitOptions fit;
  std::string schedule = "constant";
  std::string resume, weights, out, checkpoint, log;
  double clip_norm = 0, clip_value = 0, ema_decay = 0;
  int accumulate = 1;
  std::int64_t patience = 0;
  loss::CrossEntropy cross_entropy;
  const CLI::Option* seed_option = nullptr;
  bool check_gradients = true;
  bool auxiliary = false;
  bool quiet = false;
  bool json = false;
};

LastBatch last_batch_of(const std::string& name) {
  if (name == "drop") return LastBatch::drop;
  if (name == "pad") return LastBatch::pad;
  return name == "merge" ? LastBatch::merge : LastBatch::keep;
}

std::string text_of(const Metrics& metrics) {
  std::string text = fmt::format("loss {:.4f}", metrics.loss);
  if (metrics.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *metrics.accuracy);
  return fmt::format("{}, {} samples", text, metrics.samples);
}

nlohmann::json json_of(const Metrics& metrics) {
  nlohmann::json json{{"loss", metrics.loss}, {"samples", metrics.samples}};
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  return json;
}

/// A training that goes on has the seed that it began with, for random data too.
void follow_seed(TrainArguments& options) {
  const std::uint64_t seed = io::load_checkpoint_info(options.resume).seed;
  if (options.seed_option->count() > 0 && options.training.seed != seed) {
    log(LogLevel::warning, fmt::format("--seed {} is ignored: {} was started with seed {} and continues with it",
                                       options.training.seed, options.resume, seed));
  }
  options.training.seed = seed;
}

/// What is trained on, validated on and, at the end, tested on.
struct Data {
  Dataset train, test;
  std::optional<Dataset> validation;
  std::string alphabet;
};

Data open_data(const TrainArguments& options, const models::Model& model) {
  // A resumed language model goes on with the alphabet that it has.
  std::string alphabet = options.resume.empty() ? std::string{} : saved_alphabet(options.resume);
  if (alphabet.empty()) alphabet = alphabet_of(options.data);
  const auto read = [&](std::string_view split) {
    return open_dataset(options.data, split, model, options.training.seed, alphabet);
  };
  auto [train, held_out] = options.validation.divide(read("train"));
  Dataset test = read("test");
  std::optional<Dataset> validation = options.validation.source == "test" ? test : std::move(held_out);
  return {std::move(train), std::move(test), std::move(validation), std::move(alphabet)};
}

void check_loss_options(const TrainArguments& options, const models::Model& model, const Dataset& data) {
  const std::vector<float>& weights = options.cross_entropy.weights;
  CONCORD_CHECK(
      (options.cross_entropy.label_smoothing == 0 && weights.empty()) || models::has_cross_entropy(model.task),
      ArgumentError, "--label-smoothing and --class-weights need a model with classes; {} is a model for {}",
      model.name, models::name_of(model.task));
  const std::int64_t classes = model.task == models::Task::language ? data.classes : model.classes;
  CONCORD_CHECK(weights.empty() || std::ssize(weights) == classes, ArgumentError,
                "--class-weights: {} numbers for {} classes", weights.size(), classes);
}

TrainerOptions trainer_options(const TrainArguments& options, const models::Model& model, const Data& data,
                               nn::Module& network) {
  TrainerOptions result;
  result.seed = options.training.seed;
  result.network = std::string(model.name);
  result.clip = {options.clip_norm, options.clip_value};
  result.check_gradients = options.check_gradients;
  result.groups = options.training.make_groups(network, train::streamed_source(data.train));
  result.precision = options.precision.get();
  result.memory_budget = options.memory_budget.bytes();
  result.accumulate = options.accumulate;
  result.ema_decay = options.ema_decay;
  result.metadata = alphabet_metadata(data.alphabet);
  result.metadata.merge(options.validation.metadata());
  return result;
}

/// The files of a training. Each is saved in a second place if the first has no room.
class Files {
 public:
  Files(const TrainArguments& options, const Trainer& trainer) : options_(options), trainer_(trainer) {}

  void save_weights(const std::string& what) const {
    if (options_.out.empty() && options_.checkpoint.empty()) {
      std::cerr << fmt::format("{} are not saved: set --out or --checkpoint\n", what);
    }
    if (options_.out.empty()) return;
    save_somewhere(what, options_.out, [&](const std::filesystem::path& file) { trainer_.save(file); });
    std::cerr << fmt::format("{} are in {}\n", what, options_.out);
  }

  /// Saves the weights and the checkpoint after a failed training. Prints a message for each file that cannot be
  /// written.
  void save_what_there_is(const std::string& weights) const {
    if (trainer_.steps_done() == 0) return;
    const auto attempt = [](const auto& save) {
      try {
        save();
      } catch (const Error& error) {  // the training's own error is the one that is thrown on
        std::cerr << error.what() << '\n';
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

void say_resumed(const TrainArguments& options, const Trainer& trainer) {
  std::cerr << fmt::format("resumed from {} after {} steps\n", options.resume, trainer.steps_done());
  if (trainer.epochs_done() < options.fit.epochs) return;
  std::cerr << fmt::format("this training is finished: it has done {} of {} epochs; a larger --epochs continues it\n",
                           trainer.epochs_done(), options.fit.epochs);
}

nlohmann::json json_of(const TrainArguments& options, const Trainer& trainer, const History& history) {
  constexpr std::array kEnds{"finished", "stopped", "early"};
  nlohmann::json json{{"model", options.training.model},
                      {"data", options.data},
                      {"device", trainer.device().info().id},
                      {"seed", options.training.seed},
                      {"steps", trainer.steps_done()},
                      {"epochs", trainer.epochs_done()},
                      {"end", kEnds.at(static_cast<std::size_t>(history.end))}};
  if (!history.epochs.empty()) {
    const EpochReport& last = history.epochs.back();
    json["train"] = {{"loss", last.loss}, {"samples_per_second", last.samples_per_second}};
    if (last.validation) json["validation"] = json_of(*last.validation);
  }
  if (history.best_epoch > 0) json["best_epoch"] = history.best_epoch;
  return json;
}

void run_train(TrainArguments& options) {
  for (const std::string& file : {options.out, options.checkpoint}) require_writable(file);
  require_folder_of(options.log);  // it may be a device
  require_different({{"--out", options.out},
                     {"--checkpoint", options.checkpoint},
                     {"--log", options.log},
                     {"--trace", options.trace.file}});
  const io::LoadOptions permitted = options.permit.get();
  CONCORD_CHECK(!options.weights.empty() || options.permit.patterns.empty(), ArgumentError, "--permit needs --weights");
  if (!options.weights.empty()) static_cast<void>(weights::File(options.weights));  // before the data is read
  const models::Model& model = find_model(options.training.model);
  if (!options.resume.empty()) {
    follow_seed(options);
    options.validation.follow(options.resume);
  }
  options.fit.schedule = make_schedule(options.schedule, options.fit.epochs);
  const Data data = open_data(options, model);
  check_loss_options(options, model, data.train);
  options.fit.validate = data.validation;
  if (!options.fit.validate && (options.patience > 0 || options.fit.schedule.reads_losses())) {
    throw ArgumentError(fmt::format("{} needs a validation set; --validate none turns validation off",
                                    options.patience > 0 ? "--patience" : "--schedule plateau"));
  }
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  std::cerr << fmt::format(
      "{} on {}, {}: {} samples{}\n", model.name, device->info().name, data.train.name, data.train.size(),
      options.validation.is_split() ? fmt::format(", {} more held out for validation", data.validation->size()) : "");

  models::Variant variant = variant_for(model, data.train);
  variant.auxiliary = options.auxiliary;
  const std::shared_ptr<nn::Module> network = make_network(model, variant);
  Trainer trainer(network, objective_of(model, variant, options.cross_entropy), options.training.make_optimizer(),
                  device, trainer_options(options, model, data, *network));
  if (!options.weights.empty()) {
    trainer.load(options.weights, permitted);
    trainer.prepare(data.train.feature_spec());
    std::cerr << fmt::format("starts with the weights of {}\n", options.weights);
  }
  if (!options.resume.empty()) {
    trainer.resume(options.resume);
    say_resumed(options, trainer);
  }

  options.fit.batch = options.training.batch;
  options.fit.last_batch = last_batch_of(options.last_batch);
  options.fit.checkpoint = options.checkpoint;
  if (options.patience > 0) {
    EarlyStopping early;
    early.patience = options.patience;
    options.fit.early_stopping = early;
  }
  if (!options.quiet) options.fit.callbacks.push_back(std::make_shared<ProgressPrinter>(std::cerr));
  std::shared_ptr<JsonLog> log;
  if (!options.log.empty()) options.fit.callbacks.push_back(log = std::make_shared<JsonLog>(options.log));
  catch_signals();
  options.fit.stop = stop_requested;
  const Files files(options, trainer);
  const History history = [&] {
    try {
      return trainer.fit(data.train, options.fit);
    } catch (const NonFinite&) {
      files.save_what_there_is("the last good weights");
      throw;
    } catch (const IoError&) {  // of the log or a checkpoint
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
  nlohmann::json json = json_of(options, trainer, history);
  if (!stop_requested()) {  // looked at once, and with --validate split nothing was chosen by it
    const Metrics metrics = trainer.evaluate(data.test);
    if (!options.quiet) std::cerr << "test: " << text_of(metrics) << '\n';
    if (log) log->on_test(metrics);
    json["test"] = json_of(metrics);
  }
  if (options.json) std::cout << json_text(json);
  if (failure) std::rethrow_exception(failure);
  if (history.end == History::End::stopped) {
    std::cerr << fmt::format("stopped after {} step{}{}\n", trainer.steps_done(), trainer.steps_done() == 1 ? "" : "s",
                             options.checkpoint.empty()
                                 ? "; without --checkpoint the training cannot be continued later"
                                 : "; continue with --resume " + options.checkpoint);
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network");
  const auto options = std::make_shared<TrainArguments>();
  options->training.add_model(*command);
  command->add_option("--data", options->data, kDataHelp)->required()->check(data_name());
  options->device.add(*command);
  options->precision.add(*command);
  options->memory_budget.add(*command);
  command->add_option("--epochs", options->fit.epochs, "Passes over the data")->capture_default_str()->check(count());
  options->training.add_training(*command);
  options->seed_option = command->get_option("--seed");
  command->add_option("--schedule", options->schedule, kScheduleHelp)->capture_default_str()->check(schedule_text());
  command
      ->add_option("--label-smoothing", options->cross_entropy.label_smoothing,
                   "Part of a label that is spread over all classes")
      ->check(from_0_below_1());
  command
      ->add_option("--class-weights", options->cross_entropy.weights,
                   "Weight of each class in the loss, one number for each: 1,2.5,1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_negative());
  command->add_option("--clip-norm", options->clip_norm, "Scale all gradients together to at most this norm")
      ->check(positive());
  command->add_option("--clip-value", options->clip_value, "Clamp every gradient to [-x, x]")->check(positive());
  command->add_option("--accumulate", options->accumulate, "Batches per update")->capture_default_str()->check(count());
  command
      ->add_option("--ema", options->ema_decay,
                   "Evaluate averaged weights; part of the old average that is kept: 0.999")
      ->check(from_0_below_1());
  command
      ->add_option("--patience", options->patience,
                   "Stop after this many epochs without a better validation loss (see --validate)")
      ->check(count());
  command->add_option("--max-steps", options->fit.max_steps, "Stop after this many steps in this run")->check(count());
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
  command
      ->add_option("--last-batch", options->last_batch,
                   "Samples left at the end of an epoch: a smaller batch (keep), skipped (drop), added to the batch "
                   "before (merge), or filled with the first samples of the epoch (pad)")
      ->capture_default_str()
      ->check(CLI::IsMember({"keep", "drop", "merge", "pad"}));
  command->add_flag("--check-gradients,!--no-check-gradients", options->check_gradients,
                    "Stop at a gradient that is not finite, even if the loss is finite (default)");
  command->add_flag("--nan-trace", options->fit.nan_trace,
                    "Run each step operator by operator first, and stop at the first value that is not finite; slow");
  command->add_flag("--auxiliary", options->auxiliary, "Train googlenet and inception_v3 with auxiliary classifiers");
  options->trace.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->add_flag("--json", options->json, "Print the final metrics as JSON");
  command->callback([options] { options->trace.around([&] { run_train(*options); }); });
}

}  // namespace concord::cli
