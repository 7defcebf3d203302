// The checks of Trainer::fit.
#include "concord/train/fit_checks.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord::train {
namespace {

void check(const EarlyStopping& early, const FitOptions& options) {
  CONCORD_CHECK(options.validate, ArgumentError, "fit: early stopping needs a validation set");
  CONCORD_CHECK(early.metric.empty() || options.metrics.contains(early.metric), ArgumentError,
                "fit: early stopping watches the metric '{}', which is none of FitOptions::metrics", early.metric);
  CONCORD_CHECK(!early.metric.empty() || early.monitor == EarlyStopping::Monitor::loss || options.validate->classes > 0,
                ArgumentError, "fit: early stopping by accuracy needs class labels");
}

}  // namespace

void check(const TrainerState& state, const Dataset& data, const FitOptions& options) {
  state.check(data);
  CONCORD_CHECK(std::ranges::none_of(options.callbacks, [](const auto& callback) { return callback == nullptr; }),
                ArgumentError, "fit: one of the callbacks is null");
  CONCORD_CHECK(options.epochs >= 0 && options.max_steps >= 0 && options.report_every >= 0, ArgumentError,
                "fit: epochs, max_steps and report_every must not be negative, got {}, {} and {}", options.epochs,
                options.max_steps, options.report_every);
  CONCORD_CHECK(options.schedule, ArgumentError, "fit: the schedule is empty");
  CONCORD_CHECK(options.validate || !options.schedule.reads_losses(), ArgumentError,
                "fit: the schedule {} needs a validation set", options.schedule.description());
  CONCORD_CHECK(!options.nan_trace || state.options.precision != Precision::fp16, ArgumentError,
                "fit: nan_trace does not go with fp16: its scaled gradients overflow until the scale suits them");
  CONCORD_CHECK(options.validate || options.metrics.empty(), ArgumentError,
                "fit: metrics need a validation set (FitOptions::validate)");
  check_metrics(options.metrics);
  if (options.validate) state.check(*options.validate);
  if (options.early_stopping) check(*options.early_stopping, options);
}

void check_batches(const TrainerState& state, const Dataset& data, const EpochPlan& plan) {
  state.check_fits(data, Purpose::train, plan.full.size);
  if (plan.last.size == 0) return;
  try {
    state.check_fits(data, Purpose::train, plan.last.size);
  } catch (const ShapeError& error) {  // a network may take full batches and no smaller ones
    throw ShapeError(fmt::format(
        "the last batch of an epoch has {} of {} samples in batches of {}, and the network does not take it: {}. Drop "
        "that batch or merge it into the one before (FitOptions::last_batch, --last-batch), or choose another batch "
        "size.",
        plan.last.size, plan.samples, plan.full.size, error.what()));
  }
}

InFit::InFit(TrainerState& state) : state_(state) {
  CONCORD_CHECK(
      !state.is_in_fit, ArgumentError,
      "fit is called within a fit of the same Trainer, in one of its callbacks perhaps; call it when that one "
      "has returned (TrainingControl::stop ends it)");
  state.is_in_fit = true;
}

InFit::~InFit() {
  state_.is_in_fit = false;
  state_.trained_set.clear();
}

}  // namespace concord::train
