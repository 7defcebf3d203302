// concord train: a network of the zoo on a data set; Ctrl-C stops after the step and leaves a whole checkpoint.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "dataset.hpp"
#include "options.hpp"
#include "rescue.hpp"

namespace concord::cli {
namespace {

struct Options {
  TrainingOptions training;
  DeviceOption device;
  PrecisionOption precision;
  MemoryBudgetOption memory_budget;
  TraceOption trace;
  std::string data;
  ValidationOptions validation;
  std::string last_batch = "keep";
  FitOptions fit;
  std::string schedule = "constant";
  std::string resume, weights, out, checkpoint, log;
  double clip_norm = 0, clip_value = 0, ema_decay = 0;
  int accumulate = 1;
  std::int64_t patience = 0;
  bool check_gradients = true;
  bool auxiliary = false;
  bool quiet = false;
};

optim::Schedule make_schedule(const Options& options) {
  const std::int64_t epochs = options.fit.epochs;
  if (options.schedule == "cosine") return optim::schedule::cosine(epochs);
  if (options.schedule == "linear") return optim::schedule::polynomial(epochs);
  if (options.schedule == "restarts") {
    return optim::schedule::cosine_restarts(std::max<std::int64_t>(1, epochs / 7), 2);  // 1 + 2 + 4 parts
  }
  if (options.schedule == "inverse-sqrt") {
    return optim::schedule::inverse_square_root(std::max<std::int64_t>(1, epochs / 10), optim::Unit::epoch);
  }
  if (options.schedule == "plateau") return optim::schedule::plateau({.patience = 3});
  if (options.schedule == "step") return optim::schedule::step(std::max<std::int64_t>(1, epochs / 3));
  return optim::schedule::constant();
}

LastBatch last_batch_of(const std::string& name) {
  if (name == "drop") return LastBatch::drop;
  return name == "merge" ? LastBatch::merge : LastBatch::keep;
}

std::string text_of(const Metrics& metrics) {
  std::string text = fmt::format("loss {:.4f}", metrics.loss);
  if (metrics.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *metrics.accuracy);
  return fmt::format("{}, {} samples", text, metrics.samples);
}

void run(Options& options) {
  for (const std::string& file : {options.out, options.checkpoint}) require_writable(file);
  require_folder_of(options.log);  // it may be a device
  require_different({{"--out", options.out},
                     {"--checkpoint", options.checkpoint},
                     {"--log", options.log},
                     {"--trace", options.trace.file}});
  if (!options.weights.empty()) static_cast<void>(io::SafetensorsFile(options.weights));  // before the data is read
  const models::Model& model = models::find(options.training.model);
  const std::uint64_t seed = options.training.seed;
  // A resumed language model goes on with the alphabet that it has.
  std::string alphabet = options.resume.empty() ? std::string{} : saved_alphabet(options.resume);
  if (alphabet.empty()) alphabet = alphabet_of(options.data);
  if (!options.resume.empty()) options.validation.follow(options.resume);
  auto [train, held_out] = options.validation.divide(open_dataset(options.data, "train", model, seed, alphabet));
  const Dataset test = open_dataset(options.data, "test", model, seed, alphabet);
  options.fit.validate = options.validation.source == "test" ? std::optional(test) : std::move(held_out);
  if (!options.fit.validate && (options.patience > 0 || options.schedule == "plateau")) {
    throw ArgumentError(fmt::format("{} needs a validation, which --validate none leaves out",
                                    options.patience > 0 ? "--patience" : "--schedule plateau"));
  }
  const DevicePtr device = options.device.open();
  options.precision.warn_of(device->info());
  std::cerr << fmt::format("{} on {}, {}: {} samples{}\n", model.name, device->info().name, train.name, train.size(),
                           options.validation.is_split()
                               ? fmt::format(", {} more held out to validate on", options.fit.validate->size())
                               : "");

  TrainerOptions trainer_options;
  trainer_options.seed = seed;
  trainer_options.network = std::string(model.name);
  trainer_options.clip = {options.clip_norm, options.clip_value};
  trainer_options.check_gradients = options.check_gradients;
  models::Variant variant = variant_for(model, train);
  variant.auxiliary = options.auxiliary;
  const std::shared_ptr<nn::Module> network = models::make(model.name, variant);
  trainer_options.groups =
      options.training.make_groups(*network, models::batch_of(model, train.feature_spec().shape, 2));
  trainer_options.precision = options.precision.get();
  trainer_options.memory_budget = options.memory_budget.bytes();
  trainer_options.accumulate = options.accumulate;
  trainer_options.ema_decay = options.ema_decay;
  trainer_options.metadata = alphabet_metadata(alphabet);
  trainer_options.metadata.merge(options.validation.metadata());
  Trainer trainer(network, models::loss_of(model, variant), options.training.make_optimizer(), device, trainer_options);
  if (!options.weights.empty()) {
    trainer.load(options.weights, {.strict = false});
    trainer.prepare(train.feature_spec());
    std::cerr << fmt::format("begins with the weights of {}\n", options.weights);
  }
  if (!options.resume.empty()) {
    trainer.resume(options.resume);
    std::cerr << fmt::format("resumed from {} after {} steps\n", options.resume, trainer.steps_done());
  }

  options.fit.batch = options.training.batch;
  options.fit.last_batch = last_batch_of(options.last_batch);
  options.fit.schedule = make_schedule(options);
  options.fit.checkpoint = options.checkpoint;
  if (options.patience > 0) {
    EarlyStopping early;
    early.patience = options.patience;
    options.fit.early_stopping = early;
  }
  if (!options.quiet) options.fit.callbacks.push_back(std::make_shared<ProgressPrinter>(std::cerr));
  std::shared_ptr<JsonLog> log;
  if (!options.log.empty()) options.fit.callbacks.push_back(log = std::make_shared<JsonLog>(options.log));
  const auto save = [&](std::string_view what) {
    if (options.out.empty() && options.checkpoint.empty()) {
      std::cerr << fmt::format("{} are not kept: neither --out nor --checkpoint names a file\n", what);
    }
    if (options.out.empty()) return;
    save_somewhere(std::string(what), options.out, [&](const std::filesystem::path& file) { trainer.save(file); });
    std::cerr << fmt::format("{} are in {}\n", what, options.out);
  };
  catch_signals();
  options.fit.stop = stop_requested;
  const History history = [&] {
    try {
      return trainer.fit(train, options.fit);
    } catch (const NonFinite&) {
      try {
        save("the last good weights");
        if (!options.checkpoint.empty()) trainer.save_checkpoint(options.checkpoint);
      } catch (const NonFinite& error) {  // weights of a step before are not finite either
        std::cerr << error.what() << '\n';
      }
      throw;
    } catch (const IoError&) {  // of the log or a checkpoint
      save("the weights so far");
      throw;
    }
  }();
  save("the weights");
  // Looked at once, and nothing was chosen by it. With --validate test each epoch has told it.
  if (history.end != History::End::stopped && options.validation.source != "test") {
    const Metrics metrics = trainer.evaluate(test);
    if (!options.quiet) std::cerr << "test: " << text_of(metrics) << '\n';
    if (log) log->on_test(metrics);
  }
  if (history.end == History::End::stopped) {
    std::cerr << fmt::format("stopped after {} step{}{}\n", trainer.steps_done(), trainer.steps_done() == 1 ? "" : "s",
                             options.checkpoint.empty() ? "; without --checkpoint the training cannot go on later"
                                                        : "; go on with --resume " + options.checkpoint);
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network");
  const auto options = std::make_shared<Options>();
  options->training.add_model(*command);
  command->add_option("--data", options->data, kDataHelp)->required()->check(data_name());
  options->device.add(*command);
  options->precision.add(*command);
  options->memory_budget.add(*command);
  command->add_option("--epochs", options->fit.epochs, "Passes over the data")->capture_default_str()->check(count());
  options->training.add_training(*command);
  command->add_option("--schedule", options->schedule, "Of the learning rate over the epochs")
      ->capture_default_str()
      ->check(CLI::IsMember({"constant", "cosine", "step", "linear", "restarts", "inverse-sqrt", "plateau"}));
  command->add_option("--clip-norm", options->clip_norm, "Scale all gradients together to at most this norm")
      ->check(positive());
  command->add_option("--clip-value", options->clip_value, "Bring every gradient into [-x, x]")->check(positive());
  command->add_option("--accumulate", options->accumulate, "Batches an update")->capture_default_str()->check(count());
  command->add_option("--ema", options->ema_decay, "Evaluate averaged weights; the part of the old average kept: 0.999")
      ->check(from_0_below_1());
  command
      ->add_option("--patience", options->patience,
                   "Stop after so many epochs without a better validation loss (see --validate)")
      ->check(count());
  command->add_option("--max-steps", options->fit.max_steps, "Stop after so many steps of this run")->check(count());
  CLI::Option* const resume =
      command->add_option("--resume", options->resume, "Go on from this checkpoint, with its seed")->check(file_name());
  command
      ->add_option("--weights", options->weights,
                   "Begin with the weights of this file or checkpoint; what does not fit, such as a head for other "
                   "classes, is told and begins anew")
      ->check(file_name())
      ->excludes(resume);
  command->add_option("--checkpoint", options->checkpoint, "Write a checkpoint here after each epoch and when stopped")
      ->check(file_name());
  command->add_option("--out", options->out, "Write the weights here (safetensors)")->check(file_name());
  command->add_option("--log", options->log, "Append a JSON line an epoch to this file")->check(file_name());
  options->validation.add(*command);
  command
      ->add_option("--last-batch", options->last_batch,
                   "Samples that are left of an epoch: a small batch of their own (keep), left out (drop), or in the "
                   "batch before (merge)")
      ->capture_default_str()
      ->check(CLI::IsMember({"keep", "drop", "merge"}));
  command->add_flag("--check-gradients,!--no-check-gradients", options->check_gradients,
                    "Stop at gradients that are not finite even when the loss is (the default)");
  command->add_flag("--nan-trace", options->fit.nan_trace,
                    "Run each step operator by operator first, and stop at the first value that is not finite; slow");
  command->add_flag("--auxiliary", options->auxiliary, "Train googlenet and inception_v3 with auxiliary classifiers");
  options->trace.add(*command);
  command->add_flag("--quiet", options->quiet, "No progress");
  command->callback([options] { options->trace.around([&] { run(*options); }); });
}

}  // namespace concord::cli
