// Trainer::fit: the epochs of a training. Each step only enqueues one program; the host looks at the loss a few times a
// second and at the end of an epoch.
#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/train/agreement.hpp"
#include "concord/train/batches.hpp"
#include "concord/train/best_epoch.hpp"
#include "concord/train/checks.hpp"
#include "concord/train/failed_step.hpp"
#include "concord/train/fit_hook.hpp"
#include "concord/train/mixing.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/pipeline_update.hpp"
#include "concord/train/split.hpp"
#include "concord/train/state.hpp"
#include "concord/train/step_variables.hpp"
#include "concord/train/survivors.hpp"

namespace concord {
namespace {
using Clock = std::chrono::steady_clock;
constexpr const char* kTrainRole = "train";
constexpr double kReportSeconds = 0.2;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One call of fit.
class Fit {
 public:
  Fit(Trainer& trainer, TrainerState& state, const Samples& data, const FitOptions& options);
  History run();

 private:
  void build();
  /// An epoch, also where ranks are lost in it. Returns false if it was stopped before its end.
  bool train_epoch_with_survivors();
  void go_on_without(const RankLost& lost);
  bool train_epoch();
  void begin_epoch();
  /// The steps of one update of all ranks, from batch `first` of the epoch on.
  void run_update(std::int64_t first);
  /// What changes from batch to batch and is not in the inputs.
  void place_batch(std::int64_t batch);
  void run_batch(std::int64_t batch, bool is_last_of_update);
  void set_rate();
  [[nodiscard]] bool stop_wanted() const;
  void report_steps(Clock::time_point& start, std::int64_t first_batch);
  void finish_epoch(double seconds, std::int64_t samples);
  void check_finite();
  /// Waits for the device. Returns false after a step that it has not applied, and moves back to that one.
  bool is_at_applied_step();
  /// The part of these seconds of the epoch in which the device waited for samples.
  [[nodiscard]] double waiting_part(double seconds) const;
  /// Of the epoch so far, of so many samples.
  [[nodiscard]] double loss_so_far(std::int64_t samples) const { return steps_.loss(programs_.full->terms, samples); }
  [[nodiscard]] Variables& variables() const { return *state_.weights.variables(); }

  TrainingControl training_;
  TrainerState& state_;
  train::Place& at_;
  const Samples& data_;
  const FitOptions& options_;
  const std::filesystem::path checkpoint_;  // from the root: a callback may change the folder
  const Shape sample_;                      // of the first column of features
  train::StepVariables steps_;
  std::optional<train::Batches> batches_;
  train::EpochPlan plan_;      // of all ranks
  train::EpochPlan own_plan_;  // of this rank
  train::EpochPrograms programs_;
  std::optional<train::FailedStep> failed_step_;
  std::optional<train::PipelineSteps> stage_;  // of a network in stages
  std::int64_t target_epoch_ = 0;
  std::int64_t steps_left_ = 0;  // of max_steps
  std::int64_t validation_batch_;
  double waited_before_ = 0;  // seconds, before this epoch
  History history_;
  std::optional<train::BestEpoch> best_;  // with early stopping
};

Fit::Fit(Trainer& trainer, TrainerState& state, const Samples& data, const FitOptions& options)
    : training_(trainer),
      state_(state),
      at_(state.at),
      data_(data),
      options_(options),
      checkpoint_(absolute_path(options.checkpoint)),
      sample_(train::mixed_sample(data)),
      steps_(state.weights.variables(), kTrainRole),
      validation_batch_(std::max<std::int64_t>(options.batch, 256)) {
  train::check_fit(state.recipe, state.options, data, options);
  train::require_equal_ranks(state, data, options);
  std::tie(plan_, own_plan_) = train::plans_of(state, data, options);
  at_.require_fits(plan_);
  train::check_survivors(state);
  if (options.validate) {
    train::check_fits(state.recipe, *options.validate, train::Purpose::evaluate, 1, options.metrics);
  }
}

void Fit::build() {
  const timeline::Span span("prepare");
  batches_.emplace(state_, data_, options_, kTrainRole);
  programs_ = state_.programs.of_epoch(
      {train::Purpose::train, batches_->source(), {}, 0, false, {}, options_.mixing.is_on()}, own_plan_);
  batches_->open(own_plan_);
  if (state_.pipeline) {
    stage_.emplace(state_, programs_, plan_, *batches_, steps_);
  } else {
    failed_step_.emplace(state_, data_, options_, plan_, programs_, batches_->are_streamed());
  }
  CONCORD_CHECK(steps_.are_finite(), NonFinite,
                "an earlier step of this training had a loss or a gradient that is not finite; to continue, build a "
                "new trainer, or load a checkpoint into one");
}

/// Puts order, counters and the random stream of this epoch on the device; in the middle of an epoch the order only.
void Fit::begin_epoch() {
  const std::int64_t done = state_.ranks.own_batches(at_.batches_done(plan_));
  const std::vector<std::int32_t> order = train::order_of(plan_, data_, options_, at_.seed, at_.epoch);
  batches_->begin_epoch(state_.ranks.own_rows(plan_, order), done);
  at_.begin_epoch(plan_);
  if (at_.position == 0) steps_.restart(programs_.full->terms, at_.seed, at_.epoch);
  if (stage_) return stage_->begin_epoch(done);
  if (!state_.ranks.divide_batches()) return;
  // What a checkpoint says of the counters is true for rank 0.
  steps_.place_rank(done, state_.ranks.run_of(state_.ranks.own_of(at_.batches_done(plan_))));
  programs_.full->exchange->start_counts(steps_.counts(programs_.full->terms));
}

void Fit::set_rate() {
  const double wanted = options_.schedule(state_.recipe.optimizer.rule().lr,
                                          {.step = at_.updates, .epoch = at_.epoch, .losses = at_.losses});
  train::check_rate(wanted, options_.schedule.description(), at_);
  steps_.set_rate(static_cast<float>(wanted));
}

bool Fit::stop_wanted() const {
  return training_.is_stopping() || (options_.max_steps > 0 && steps_left_ <= 0) || (options_.stop && options_.stop());
}

void Fit::check_finite() {
  const timeline::Span span("wait for the loss");
  state_.programs.require_all_ranks();
  if (stage_) return stage_->require_finite(steps_.are_finite());
  if (is_at_applied_step()) return;
  failed_step_->explain();
}

bool Fit::is_at_applied_step() {
  if (steps_.are_finite()) return true;
  // The device has not applied the bad step, so everything is as before it.
  at_.move_to(plan_, state_.ranks.batches_of_all(steps_.batches_done(), plan_));
  return false;
}

double Fit::waiting_part(double seconds) const {
  return std::min((batches_->seconds_waited() - waited_before_) / seconds, 1.0);
}

/// Moves the start later by the time of callbacks.
void Fit::report_steps(Clock::time_point& start, std::int64_t first_batch) {
  check_finite();
  const auto done = static_cast<double>(at_.position - first_batch * plan_.full.size);
  const StepReport report{at_.epoch + 1,
                          target_epoch_,
                          at_.batches_done(plan_),
                          plan_.batches(),
                          loss_so_far(at_.position),
                          done / seconds_since(start),
                          waiting_part(seconds_since(start))};
  const auto reported = Clock::now();
  for (const auto& callback : options_.callbacks) callback->on_step(training_, report);
  start += Clock::now() - reported;
}

void Fit::place_batch(std::int64_t batch) {
  if (!options_.mixing.is_on()) return;
  train::write_mixing(variables(), options_.mixing, sample_, at_.seed, static_cast<std::uint32_t>(at_.epoch), batch);
}

void Fit::run_batch(std::int64_t batch, bool is_last_of_update) {
  place_batch(batch);
  train::StepProgram& step = batch < plan_.full.rows ? *programs_.full : *programs_.last;
  if (options_.nan_trace) failed_step_->require_finite_values();
  batches_->next(*step.program);
  step.run_training(is_last_of_update);
}

void Fit::run_update(std::int64_t first) {
  const train::Ranks& ranks = state_.ranks;
  const std::int64_t end = std::min(first + at_.accumulate, plan_.batches());
  train::StepProgram& step = *programs_.full;  // the exchange and the update are the same for all batch sizes
  const auto has = [&](std::int64_t own) { return own < end && (own < plan_.full.rows || own_plan_.last.size > 0); };
  if (ranks.are_uneven()) steps_.place_run(ranks.run_of(ranks.own_of(first)));
  if (!has(ranks.own_of(first))) step.exchange->clear();
  for (std::int64_t batch = first; batch < end; batch += ranks.at_once()) {
    const std::int64_t own = ranks.own_of(batch);
    const bool is_last = batch + ranks.at_once() >= end;
    if (has(own)) {
      run_batch(own, is_last);
    } else {
      step.run_without_batch(is_last);
    }
  }
  step.run_update();
  at_.move_to(plan_, end);
}

bool Fit::train_epoch_with_survivors() {
  for (;;) {
    try {
      if (at_.epoch == target_epoch_) return true;  // another rank has ended the last epoch
      if (!programs_.full) build();
      return train_epoch();
    } catch (const RankLost& lost) {
      if (train::least_ranks(state_.options) == 0) throw;
      go_on_without(lost);
    }
  }
}

void Fit::go_on_without(const RankLost& lost) {
  const timeline::Span span("go on without ranks");
  if (programs_.full && programs_.full->exchange) programs_.full->exchange->give_up();
  is_at_applied_step();
  const std::int64_t before = at_.step;
  failed_step_.reset();
  batches_.reset();
  programs_ = {};
  train::go_on_with_survivors(state_, lost, checkpoint_);
  steps_left_ -= at_.step - before;
  own_plan_ = state_.ranks.own_plan(plan_);
  steps_ = {state_.weights.variables(), kTrainRole};
  // A rank that is left alone has all batches.
  if (!state_.ranks.are_several()) steps_.place_rank(at_.batches_done(plan_), at_.batches_done(plan_));
}

bool Fit::train_epoch() {
  const timeline::Span span("epoch");
  begin_epoch();
  waited_before_ = batches_->seconds_waited();
  auto start = Clock::now();
  auto reported = start;
  const std::int64_t first = at_.batches_done(plan_);
  const std::int64_t first_position = at_.position;
  train::Pace pace(*state_.device);
  while (at_.position < plan_.samples) {
    if (state_.ranks.any(stop_wanted())) {
      check_finite();
      return false;
    }
    set_rate();
    const std::int64_t before = at_.step;
    if (stage_) {
      stage_->run_update([&](std::int64_t batch) { place_batch(batch); });
    } else if (state_.ranks.divide_batches()) {
      run_update(at_.batches_done(plan_));
    } else {
      const std::int64_t batch = at_.batches_done(plan_);
      // The last batch of an epoch ends a group of accumulated ones.
      if (at_.accumulate > 1) steps_.set_flush(batch + 1 == plan_.batches());
      run_batch(batch, true);
      at_.move_to(plan_, batch + 1);
    }
    pace.step();
    steps_left_ -= at_.step - before;
    const bool due = options_.report_every > 0 ? at_.step / options_.report_every != before / options_.report_every
                                               : seconds_since(reported) > kReportSeconds;
    if (due && at_.position < plan_.samples) {
      report_steps(start, first);
      reported = Clock::now();
    }
  }
  check_finite();
  finish_epoch(seconds_since(start), plan_.samples - first_position);
  return true;
}

void Fit::finish_epoch(double seconds, std::int64_t samples) {
  EpochReport report;
  report.loss = state_.ranks.agreed(loss_so_far(plan_.samples));
  report.epoch = at_.epoch + 1;
  report.epochs = target_epoch_;
  report.steps = at_.step;
  report.rate = static_cast<double>(steps_.rate());
  report.seconds = seconds;
  report.samples_per_second = static_cast<double>(samples) / seconds;
  report.waiting = waiting_part(seconds);
  if (options_.validate) {
    const timeline::Span span("validation");
    report.validation =
        train::evaluate_within_memory(state_, *options_.validate, validation_batch_, options_.batch, options_.metrics);
    state_.ranks.share(*report.validation);
  }
  at_.end_epoch();  // from here on nothing is lost with a rank
  if (report.validation) at_.losses.push_back(report.validation->loss);
  history_.epochs.push_back(report);
  if (!checkpoint_.empty()) train::save_checkpoint(state_, checkpoint_);
  for (const auto& callback : options_.callbacks) callback->on_epoch(training_, report);
}

History Fit::run() {
  build();
  train::require_equal_weights(state_);
  state_.resumed.compare(at_, state_.recipe.optimizer.rule().lr, options_.schedule);
  state_.schedule = options_.schedule.description();
  target_epoch_ = at_.first_epoch + options_.epochs;
  steps_left_ = options_.max_steps;
  if (options_.early_stopping) best_.emplace(state_.weights, *options_.early_stopping);
  for (const auto& callback : options_.callbacks) callback->on_begin(training_);
  while (at_.epoch < target_epoch_) {
    if (!train_epoch_with_survivors()) {
      history_.end = History::End::stopped;
      if (at_.position > 0) history_.stopped_loss = loss_so_far(at_.position);
      if (!checkpoint_.empty()) train::save_checkpoint(state_, checkpoint_);
      break;
    }
    if (best_ && !history_.epochs.empty() && !best_->worth_going_on(history_.epochs.back())) {
      history_.end = History::End::early;
      break;
    }
  }
  if (history_.end != History::End::stopped) {
    if (best_) best_->restore_weights();
    at_.first_epoch = at_.epoch;
  }
  if (best_) history_.best_epoch = best_->epoch();
  for (const auto& callback : options_.callbacks) callback->on_end(training_, history_);
  return std::move(history_);
}

}  // namespace

History Trainer::fit(const Samples& data, const FitOptions& options) {
  return with_state("training", [&](TrainerState& state) {
    const train::InFit in_fit(state);
    train::ask_fit_hook(state, data, options);
    return train::failing_alone(state, !options.nan_trace, [&] { return Fit(*this, state, data, options).run(); });
  });
}

}  // namespace concord
