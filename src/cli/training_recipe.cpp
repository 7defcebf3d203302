// The options of a training, and what they become.
#include "concord/cli/training_recipe.hpp"

#include <fmt/format.h>

#include "concord/cli/counted.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/schedule.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

LastBatch last_batch_of(const std::string& name) {
  if (name == "drop") return LastBatch::drop;
  if (name == "pad") return LastBatch::pad;
  return name == "merge" ? LastBatch::merge : LastBatch::keep;
}

void check_loss_options(const loss::CrossEntropy& cross_entropy, const models::Model& model,
                        const models::Variant& variant) {
  const std::vector<float>& weights = cross_entropy.weights;
  CONCORD_CHECK((cross_entropy.label_smoothing == 0 && weights.empty()) || models::has_cross_entropy(model.task),
                ArgumentError, "--label-smoothing and --class-weights need a model with classes; {} is a model for {}",
                model.name, models::name_of(model.task));
  const std::int64_t classes = variant.classes > 0 ? variant.classes : model.classes;
  CONCORD_CHECK(weights.empty() || std::ssize(weights) == classes, ArgumentError, "--class-weights: {} for {}",
                counted(weights.size(), "number"), counted(classes, "class", "classes"));
}

/// --class-weights for these samples; empty: none.
std::vector<float> class_weights_of(const std::string& text, const Samples& samples) {
  if (text == "balanced") return data::balanced_weights(data::class_counts(samples));
  std::vector<float> weights;
  for (const std::string& word : split(text, ',')) weights.push_back(number_in_text<float>(word).value());
  return weights;
}

/// What a class is wanted of where `samples` have none for each sample; empty: they have.
std::string what_samples_have(const Samples& samples) {
  const std::vector<ColumnSpec> labels = samples.label_specs();
  if (labels.empty()) return {};
  if (labels[0].spec.dtype != DType::i32) return "numbers to predict";
  return labels[0].spec.shape.rank() > 0 ? "several classes for each sample (pixels or places)" : "";
}

/// Options for classes are for samples that have them.
void check_class_options(const TrainingRecipe& recipe, const Samples& samples) {
  const std::string have = what_samples_have(samples);
  if (have.empty()) return;
  const bool have_classes = samples.label_specs()[0].spec.dtype == DType::i32;
  CONCORD_CHECK(recipe.class_weights.empty() || (have_classes && recipe.class_weights != "balanced"), ArgumentError,
                "--class-weights{}: {} has {}{}", recipe.class_weights == "balanced" ? " balanced" : "", samples.name,
                have, have_classes ? "; give one number for each class" : ", which have no weights");
  CONCORD_CHECK(recipe.sampler != "balanced", ArgumentError,
                "--sampler balanced: {} has {}, not a class for each sample", samples.name, have);
  CONCORD_CHECK(recipe.cross_entropy.label_smoothing == 0 || have_classes, ArgumentError,
                "--label-smoothing: {} has {}, which are not smoothed", samples.name, have);
}

int threads_of(const std::string& text) { return text == "auto" ? 0 : *number_in_text<int>(text); }

}  // namespace

void TrainingRecipe::add(CLI::App& command) {
  data.add(command, command.add_option("--data", data.text, kDataHelp)->required());
  command
      .add_option("--augment", augment,
                  "Random changes of images in training: rrc, crop=4, flip, vflip, jitter=0.4:0.4:0.4:0.1, rotate=15, "
                  "affine=…, shear=…, randaugment=2:9, cutout=0.5, erase; several with commas")
      ->check(augmentation());
  command
      .add_option("--sampler", sampler,
                  "Order of an epoch: all samples at random (shuffle), as they are stored (sequential), or all classes "
                  "equally often (balanced)")
      ->capture_default_str()
      ->check(one_of({"shuffle", "sequential", "balanced"}));
  command.add_option("--mixup", fit.mixing.mixup, "Blend each sample with another one: the parameter of Beta, 0.2")
      ->check(not_negative());
  command
      .add_option("--cutmix", fit.mixing.cutmix,
                  "Replace a rectangle of each image by that of another one: the parameter of Beta, 1")
      ->check(not_negative());
  data.add_cache(command);
  command.add_option("--loader-threads", loader_threads, "Threads that read and decode samples, or auto")
      ->capture_default_str()
      ->check(auto_or_count());
  command
      .add_option("--bad", bad,
                  "What to do with a damaged sample: take another one in its place and name it (skip), or stop (fail)")
      ->capture_default_str()
      ->check(one_of({"skip", "fail"}));
  precision.add(command);
  memory_budget.add(command);
  command.add_option("--epochs", fit.epochs, "Passes over the data")->capture_default_str()->check(count());
  training.add_training(command);
  command.add_option("--schedule", schedule, kScheduleHelp)->capture_default_str()->check(schedule_text());
  command
      .add_option("--label-smoothing", cross_entropy.label_smoothing,
                  "Part of a label that is spread over all classes; in training alone, not in the loss of a validation")
      ->check(from_0_below_1());
  command
      .add_option("--class-weights", class_weights,
                  "Weight of each class in the loss of the training, one number for each: 1,2.5,1; or balanced: all "
                  "classes count the same. Validations count every sample the same")
      ->check(weights_of_classes());
  command.add_option("--clip-norm", clip_norm, "Scale all gradients together to at most this norm")->check(positive());
  command.add_option("--clip-value", clip_value, "Clamp every gradient to [-x, x]")->check(positive());
  command.add_option("--accumulate", accumulate, "Batches per update")->capture_default_str()->check(count());
  command.add_option("--ema", ema_decay, "Evaluate averaged weights; part of the old average that is kept: 0.999")
      ->check(from_0_below_1());
  command
      .add_option("--patience", patience,
                  "Stop after this many epochs without a better validation loss (see --validate)")
      ->check(count());
  command
      .add_option("--max-steps", fit.max_steps,
                  "Stop after this many steps in this run: batches of all devices together. On several devices, an "
                  "update that has begun is completed")
      ->check(count());
  command
      .add_option("--last-batch", last_batch,
                  "Samples left at the end of an epoch: a smaller batch (keep), skipped (drop), added to the batch "
                  "before (merge), or filled with the first samples of the epoch (pad). Samples that fill no batch at "
                  "all are one")
      ->capture_default_str()
      ->check(one_of({"keep", "drop", "merge", "pad"}));
  command.add_flag("--check-gradients,!--no-check-gradients", check_gradients,
                   "Stop at a gradient that is not finite, even if the loss is finite (default)");
  command.add_flag("--nan-trace", fit.nan_trace,
                   "Run each step operator by operator first, and stop at the first value that is not finite; slow");
  command.add_flag("--auxiliary", auxiliary, "Train googlenet and inception_v3 with auxiliary classifiers");
}

DataOptions TrainingRecipe::data_options() const {
  DataOptions options = data;
  options.skips_bad = bad == "skip";
  return options;
}

models::Variant TrainingRecipe::variant(const DataSource& source, const Samples& samples) const {
  models::Variant variant = source.variant_for(samples);
  variant.auxiliary = auxiliary;
  return variant;
}

Objective TrainingRecipe::objective(const DataSource& source, const Samples& samples,
                                    const models::Model& model) const {
  loss::CrossEntropy loss = cross_entropy;
  CONCORD_CHECK(class_weights.empty() || source.label_outputs().empty(), ArgumentError,
                "--class-weights are for one label; {} has several", samples.name);
  if (models::has_cross_entropy(model.task)) check_class_options(*this, samples);
  if (!class_weights.empty()) loss.weights = class_weights_of(class_weights, samples);
  const models::Variant network = variant(source, samples);
  check_loss_options(loss, model, network);
  return source.objective_for(samples, network, loss);
}

Objective TrainingRecipe::evaluation(const DataSource& source, const Samples& samples) const {
  if (class_weights.empty() && cross_entropy.label_smoothing == 0) return {};
  return source.objective_for(samples, variant(source, samples));
}

TrainerOptions TrainingRecipe::trainer_options(const models::Model& model, const Samples& samples,
                                               nn::Module& network) const {
  TrainerOptions result;
  result.seed = training.seed;
  result.network = std::string(model.name);
  result.clip = {clip_norm, clip_value};
  result.check_gradients = check_gradients;
  result.groups = training.make_groups(network, train::streamed_source(samples));
  result.precision = precision.get();
  result.memory_budget = memory_budget.bytes();
  result.accumulate = accumulate;
  result.ema_decay = ema_decay;
  return result;
}

FitOptions TrainingRecipe::fit_options() const {
  FitOptions options = fit;
  options.schedule = make_schedule(schedule, fit.epochs);
  options.batch = training.batch;
  options.shuffle = sampler == "shuffle";
  options.balance = sampler == "balanced";
  options.loader_threads = threads_of(loader_threads);
  options.bad_samples = bad == "fail" ? data::BadSamples::fail : data::BadSamples::skip;
  options.last_batch = last_batch_of(last_batch);
  if (patience > 0) {
    EarlyStopping early;
    early.patience = patience;
    options.early_stopping = early;
  }
  return options;
}

void TrainingRecipe::check_without_validation() const {
  const bool reads_losses = make_schedule(schedule, fit.epochs).reads_losses();
  CONCORD_CHECK(patience == 0 && !reads_losses, ArgumentError,
                "{} needs a validation set; --validate none turns validation off",
                patience > 0 ? "--patience" : "--schedule plateau");
}

}  // namespace concord::cli
