// The steps of an epoch.
#include <algorithm>

#include "concord/train/checks.hpp"
#include "concord/train/epoch_plan.hpp"
#include "concord/train/fit.hpp"
#include "concord/train/mixing.hpp"

namespace concord::train {

/// Puts order, counters and the random stream of this epoch on the device; in the middle of an epoch the order only.
void Fit::begin_epoch() {
  const std::int64_t done = state_.ranks.own_batches(at_.batches_done(plan_));
  const std::vector<std::int32_t> order = order_of(plan_, data_, options_, at_.seed, at_.epoch);
  batches_->begin_epoch(state_.ranks.own_rows(plan_, order), done);
  at_.begin_epoch(plan_);
  if (at_.position == 0) steps_.restart(programs_.full->terms, at_.seed, at_.epoch);
  if (stage_) return stage_->begin_epoch(done);
  if (!state_.ranks.divide_batches()) return;
  // What a checkpoint says of the counters is true for rank 0.
  steps_.place_rank(done, state_.ranks.run_of(state_.ranks.own_of(at_.batches_done(plan_))));
  counts_as_rank_ = true;
  programs_.full->exchange->start_counts(steps_.counts(programs_.full->terms));
}

void Fit::set_rate() {
  const double wanted = options_.schedule(state_.recipe.optimizer.rule().lr,
                                          {.step = at_.updates,
                                           .epoch = at_.epoch,
                                           .losses = at_.losses,
                                           .epoch_step = plan_.updates_in(at_.batches_done(plan_), at_.accumulate),
                                           .epoch_steps = plan_.updates_in(plan_.batches(), at_.accumulate)});
  check_rate(wanted, options_.schedule.description(), at_);
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

void Fit::place_batch(std::int64_t batch) {
  if (!options_.mixing.is_on()) return;
  write_mixing(variables(), options_.mixing, sample_, at_.seed, static_cast<std::uint32_t>(at_.epoch), batch);
}

void Fit::run_batch(std::int64_t batch, bool is_last_of_update) {
  place_batch(batch);
  StepProgram& step = batch < plan_.full.rows ? *programs_.full : *programs_.last;
  if (options_.nan_trace) failed_step_->require_finite_values();
  batches_->next(*step.program);
  step.run_training(is_last_of_update);
}

void Fit::run_update(std::int64_t first) {
  const Ranks& ranks = state_.ranks;
  const std::int64_t end = std::min(first + at_.accumulate, plan_.batches());
  StepProgram& step = *programs_.full;  // the exchange and the update are the same for all batch sizes
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

}  // namespace concord::train
