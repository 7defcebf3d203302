// The checks of a Trainer's functions.
#include "concord/train/checks.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/data/image/image_changes.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/train/mixing.hpp"

namespace concord::train {
namespace {

void check_early_stopping(const Objective& objective, const EarlyStopping& early, const FitOptions& options) {
  CONCORD_CHECK(options.validate, ArgumentError, "fit: early stopping needs a validation set");
  const std::vector<ColumnSpec> labels = options.validate->label_specs();
  const NamedMetrics of_outputs = objective.metrics(labels);
  CONCORD_CHECK(early.metric.empty() || options.metrics.contains(early.metric) || of_outputs.contains(early.metric),
                ArgumentError, "fit: early stopping watches the metric '{}', which is not in FitOptions::metrics",
                early.metric);
  const bool has_accuracy = objective.is_single() && labels[0].classes > 0;
  CONCORD_CHECK(!early.metric.empty() || early.monitor == EarlyStopping::Monitor::loss || has_accuracy, ArgumentError,
                "fit: early stopping by accuracy needs one output with class labels; of several outputs, name a metric "
                "such as 'OUTPUT.accuracy'");
}

}  // namespace

std::vector<std::optional<std::int32_t>> ignored_labels_of(const Recipe& recipe, const Samples& data) {
  Source source = streamed_source(data);
  for (ColumnSpec& labels : source.labels) labels.classes = 0;  // whatever the labels are
  return trace(recipe, {Purpose::evaluate, source, {1, 0}, 0}).ignored;
}

data::LoaderOptions loader_options(const Recipe& recipe, const Samples& data, std::uint64_t seed) {
  data::LoaderOptions options{.threads = 0, .seed = seed};
  if (data::dataset_of(data) == nullptr) options.ignored = ignored_labels_of(recipe, data);
  return options;
}

void check_data(const Recipe& recipe, const Samples& data) {
  // Nothing checks the labels of a set that stays on the device later.
  if (const auto images = data::changed_images_of(data)) check_data(recipe, *images->dataset);
  if (data::labels_in_range(data)) return data::check(data);
  data::check(data, ignored_labels_of(recipe, data));
}

void check_fits(const Recipe& recipe, const Samples& data, Purpose purpose, std::int64_t batch,
                const NamedMetrics& metrics) {
  const ProgramKey key{purpose, streamed_source(data), {batch, 0}, 0, false, metrics};
  static_cast<void>(trace(recipe, key));
}

void check_fit(const Recipe& recipe, const TrainerOptions& trainer, const Samples& data, const FitOptions& options) {
  const Precision precision = trainer.precision;
  check_data(recipe, data);
  CONCORD_CHECK(std::ranges::none_of(options.callbacks, [](const auto& callback) { return callback == nullptr; }),
                ArgumentError, "fit: one of the callbacks is null");
  CONCORD_CHECK(options.epochs >= 0 && options.max_steps >= 0 && options.report_every >= 0, ArgumentError,
                "fit: epochs, max_steps and report_every must not be negative, got {}, {} and {}", options.epochs,
                options.max_steps, options.report_every);
  CONCORD_CHECK(options.schedule, ArgumentError, "fit: the schedule is empty");
  CONCORD_CHECK(options.validate || !options.schedule.reads_losses(), ArgumentError,
                "fit: the schedule {} needs a validation set", options.schedule.description());
  CONCORD_CHECK(!options.nan_trace || !(trainer.pipeline.is_on() || trainer.model_parallel.is_on()), ArgumentError,
                "fit: nan_trace cannot be used with a network that is divided among devices, where none has the whole "
                "step");
  CONCORD_CHECK(!options.nan_trace || precision != Precision::fp16, ArgumentError,
                "fit: nan_trace cannot be used with fp16: scaled gradients overflow until the scale is small enough");
  CONCORD_CHECK(options.validate || options.metrics.empty(), ArgumentError,
                "fit: metrics need a validation set (FitOptions::validate)");
  CONCORD_CHECK(!data.is_sequential() || (!options.balance && options.last_batch != LastBatch::pad), ArgumentError,
                "fit: {} is a stream, whose samples come in their order: it cannot be balanced, nor its last batch be "
                "filled",
                data.name);
  CONCORD_CHECK(!data.is_sequential() || !options.nan_trace, ArgumentError,
                "fit: nan_trace reads samples twice, and {} is a stream", data.name);
  check_metrics(options.metrics);
  check_mixing(options.mixing, data);
  if (options.validate) check_data(recipe, *options.validate);
  if (options.early_stopping)
    check_early_stopping(recipe.objective_for(Purpose::evaluate), *options.early_stopping, options);
}

void check_rate(double rate, const std::string& schedule, const Place& at) {
  CONCORD_CHECK(std::isfinite(static_cast<float>(rate)) && rate >= 0, ArgumentError,
                "the schedule '{}' gives the learning rate {} for step {} (epoch {}, update {}): it must be finite and "
                "not negative. The step is not run; weights and optimizer keep their values from before it.",
                schedule, rate, at.step + 1, at.epoch + 1, at.updates + 1);
}

void check_batches(const Recipe& recipe, const Samples& data, const EpochPlan& plan) {
  check_fits(recipe, data, Purpose::train, plan.full.size);
  if (plan.last.size == 0) return;
  try {
    check_fits(recipe, data, Purpose::train, plan.last.size);
  } catch (const ShapeError& error) {  // a network may take full batches and no smaller ones
    throw ShapeError(fmt::format(
        "the last batch of an epoch has {} of {} samples in batches of {}, and the network does not accept "
        "it: {}. Drop that batch, fill it or merge it into the one before (FitOptions::last_batch, --last-batch), "
        "or choose another batch size.",
        plan.last.size, plan.samples, plan.full.size, error.what()));
  }
}

}  // namespace concord::train
