// Trainer::fit: the epochs of a training. Each step only enqueues one program; the host looks at the loss a few times a
// second and at the end of an epoch.
#include "concord/train/fit.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/data/selection.hpp"
#include "concord/train/agreement.hpp"
#include "concord/train/checks.hpp"
#include "concord/train/fit_hook.hpp"
#include "concord/train/mixing.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/split.hpp"
#include "concord/train/survivors.hpp"

namespace concord {
namespace train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kTrainRole = "train";
constexpr double kReportSeconds = 0.2;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Fit::Fit(Trainer& trainer, TrainerState& state, const Samples& data, const FitOptions& options)
    : training_(trainer),
      state_(state),
      at_(state.at),
      data_(data),
      options_(options),
      checkpoint_(absolute_path(options.checkpoint)),
      sample_(mixed_sample(data)),
      steps_(state.weights.variables(), kTrainRole),
      validation_(options.validate),
      validation_batch_(std::max<std::int64_t>(options.batch, 256)) {
  check_fit(state.recipe, state.options, data, options);
  check_survivors(state);
  if (options.validate) {
    check_fits(state.recipe, *options.validate, Purpose::evaluate, 1, options.metrics);
  }
}

void Fit::begin() {
  require_equal_ranks(state_, data_, options_);
  std::tie(plan_, own_plan_) = plans_of(state_, data_, options_);
  if (target_epoch_ == 0) at_.require_fits(plan_);  // the place of a checkpoint
  build();
  require_equal_weights(state_);
  if (!counts_as_rank_ || state_.ranks.are_several()) return;
  // A rank that is left alone has all batches.
  steps_.place_rank(at_.batches_done(plan_), at_.batches_done(plan_));
  counts_as_rank_ = false;
}

void Fit::begin_early_stopping() {
  if (!options_.early_stopping) return state_.best.reset();
  if (state_.best && !state_.best->fits(*options_.early_stopping)) state_.best.reset();
  if (state_.best) return;
  state_.best.emplace(*options_.early_stopping);
  if (at_.epoch == at_.first_epoch) return;
  log(LogLevel::warning,
      "the training that goes on has not noted its best epoch by what early stopping watches; it counts from here on");
}

void Fit::build() {
  const timeline::Span span("prepare");
  batches_.emplace(state_, data_, options_, kTrainRole);
  programs_ = state_.programs.of_epoch({Purpose::train, batches_->source(), {}, 0, false, {}, options_.mixing.is_on()},
                                       own_plan_);
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

template <class Work>
auto Fit::with_survivors(const Work& work) {
  for (;;) {
    try {
      return work();
    } catch (const RankLost& lost) {
      end_exchange();
      if (least_ranks(state_.options) == 0) throw;
      go_on_without(lost);
    }
  }
}

void Fit::end_exchange() {
  if (!programs_.full) return;
  if (programs_.full->exchange) programs_.full->exchange->give_up();
  if (!stage_) is_at_applied_step();
}

void Fit::go_on_without(const RankLost& lost) {
  const timeline::Span span("go on without ranks");
  const std::int64_t before = at_.step;
  failed_step_.reset();
  batches_.reset();
  programs_ = {};
  go_on_with_survivors(state_, lost, checkpoint_);
  steps_left_ -= at_.step - before;
  steps_ = {state_.weights.variables(), kTrainRole};
}

void Fit::confirm_checkpoint() {
  if (least_ranks(state_.options) == 0) return;
  bool is_first_look = true;
  with_survivors([&] {
    if (!std::exchange(is_first_look, false) && !checkpoint_.empty()) save_checkpoint(state_, checkpoint_);
    state_.ranks.wait();
  });
}

bool Fit::train_epoch() {
  if (at_.epoch == target_epoch_) return true;  // another rank has ended the last epoch
  const timeline::Span span("epoch");
  if (!programs_.full) begin();
  begin_epoch();
  waited_before_ = batches_->seconds_waited();
  auto start = Clock::now();
  auto reported = start;
  const std::int64_t first = at_.batches_done(plan_);
  const std::int64_t first_position = at_.position;
  Pace pace(*state_.device);
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
  if (validation_) {
    const timeline::Span span("validation");
    report.validation = validate();
    state_.ranks.share(*report.validation);
  }
  at_.end_epoch();  // from here on nothing is lost with a rank
  if (report.validation) at_.losses.push_back(report.validation->loss);
  if (state_.best) state_.best->note(report, *options_.early_stopping, state_.weights);
  history_.epochs.push_back(report);
  if (!checkpoint_.empty()) save_checkpoint(state_, checkpoint_);
  for (const auto& callback : options_.callbacks) callback->on_epoch(training_, report);
}

Metrics Fit::validate() {
  std::vector<std::int32_t> damaged;
  EvaluateOptions how;
  how.metrics = options_.metrics;
  how.bad_samples = options_.bad_samples;
  how.left_out = [&](std::int32_t row) { damaged.push_back(row); };
  Metrics metrics = evaluate_within_memory(state_, *validation_, validation_batch_, options_.batch, how);
  if (!damaged.empty()) validation_ = data::without_rows(validation_, damaged);
  return metrics;
}

History Fit::run() {
  begin_early_stopping();
  with_survivors([&] { begin(); });
  if (state_.best) state_.best->cut(state_.weights);
  state_.resumed.compare(at_, plan_, state_.recipe.optimizer.rule().lr, options_.schedule);
  state_.schedule = options_.schedule.description();
  target_epoch_ = at_.first_epoch + options_.epochs;
  steps_left_ = options_.max_steps;
  for (const auto& callback : options_.callbacks) callback->on_begin(training_);
  while (at_.epoch < target_epoch_ && !is_over()) {
    if (!with_survivors([&] { return train_epoch(); })) {
      history_.end = History::End::stopped;
      if (at_.position > 0) history_.stopped_loss = loss_so_far(at_.position);
      if (!checkpoint_.empty()) save_checkpoint(state_, checkpoint_);
      break;
    }
  }
  confirm_checkpoint();
  if (state_.best) history_.best_epoch = state_.best->score().epoch;
  if (history_.end != History::End::stopped) {
    if (is_over()) history_.end = History::End::early;
    if (state_.best) state_.best->restore_weights(*options_.early_stopping, state_.weights);
    state_.best.reset();
    at_.first_epoch = at_.epoch;
  }
  for (const auto& callback : options_.callbacks) callback->on_end(training_, history_);
  return std::move(history_);
}

}  // namespace train

History Trainer::fit(const Samples& data, const FitOptions& options) {
  return with_state("training", [&](TrainerState& state) {
    const train::InFit in_fit(state);
    train::ask_fit_hook(state, data, options);
    return train::failing_alone(state, !options.nan_trace,
                                [&] { return train::Fit(*this, state, data, options).run(); });
  });
}

}  // namespace concord
