// Trainer::fit: the epochs of a training. Each step only enqueues one program; the host looks at the loss a few times a
// second and at the end of an epoch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/philox.hpp"
#include "concord/optim/failure.hpp"
#include "concord/train/best_epoch.hpp"
#include "concord/train/fit_checks.hpp"
#include "concord/train/fit_hook.hpp"
#include "concord/train/non_finite_search.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/state.hpp"
#include "concord/train/stream.hpp"
#include "concord/train/trainer.hpp"

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kRole = "train";
constexpr double kReportSeconds = 0.2;
constexpr const char* kKept = ". Weights and optimizer are those before that step.";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One call of fit.
class Fit {
 public:
  Fit(Trainer& trainer, TrainerState& state, const Dataset& data, const FitOptions& options);
  History run();

 private:
  void build();
  bool train_epoch();
  void begin_epoch();
  void set_rate();
  void set_flush(bool flush);
  [[nodiscard]] bool stop_wanted() const;
  void report_steps(Clock::time_point& start, std::int64_t first_batch);
  void finish_epoch(double seconds, std::int64_t samples);
  void augment(Tensor& features, std::span<const std::int32_t> rows) const;
  [[nodiscard]] std::vector<std::int32_t> next_rows(bool in_full) const;
  [[nodiscard]] NonFiniteReport search_step(bool in_full);
  void require_finite_values(bool in_full);
  [[nodiscard]] std::string next_step() const;
  [[noreturn]] void explain_failure();
  void check_finite();
  [[nodiscard]] double loss_so_far(std::int64_t samples) const { return state_.loss_so_far(full_->terms, samples); }
  [[nodiscard]] std::int64_t batch_number() const { return plan_.batches_in(state_.at.position); }
  [[nodiscard]] std::int64_t updates_in(std::int64_t batches) const {
    return plan_.updates_in(batches, state_.options.accumulate);
  }
  [[nodiscard]] std::vector<std::int32_t> order_of_epoch() const {
    return train::order_of(plan_, options_.shuffle, state_.options.seed, state_.at.epoch);
  }

  TrainingControl training_;
  TrainerState& state_;
  const Dataset& data_;
  const FitOptions& options_;
  train::EpochPlan plan_;
  train::Source source_;
  train::StepProgramPtr full_, last_;
  train::NonFiniteSearch search_;
  std::optional<train::Stream> stream_;
  std::int64_t target_epoch_ = 0;
  std::int64_t steps_left_ = 0;  // of max_steps
  std::int64_t validation_batch_;
  float rate_ = NAN;  // on the device
  std::optional<bool> flush_;
  History history_;
  std::optional<train::BestEpoch> best_;  // with early stopping
};

Fit::Fit(Trainer& trainer, TrainerState& state, const Dataset& data, const FitOptions& options)
    : training_(trainer),
      state_(state),
      data_(data),
      options_(options),
      search_(state.variables, state.options.precision),
      validation_batch_(std::max<std::int64_t>(options.batch, 256)) {
  train::check(state, data, options);
  plan_ = train::plan_epoch(data.size(), options.batch, options.last_batch);
  CONCORD_CHECK(state_.at.position == 0 || (state_.at.batch == plan_.full.size && state_.at.samples == plan_.samples),
                ArgumentError,
                "the training stopped within an epoch of {} samples in batches of {}; it cannot go on with {} in "
                "batches of {}",
                state_.at.samples, state_.at.batch, plan_.samples, plan_.full.size);
  CONCORD_CHECK(state_.at.position <= plan_.full.rows * plan_.full.size, ArgumentError,
                "the training stopped before the last batch of an epoch, which this FitOptions::last_batch merges into "
                "the one before; go on with that of the stopped training");
  train::check_batches(state, data, plan_);
  if (options.validate) state_.check_fits(*options.validate, train::Purpose::evaluate, 1, options.metrics);
}

void Fit::build() {
  const timeline::Span span("prepare");
  source_ = state_.source_of(data_, !options_.augmentation);
  state_.trained_set = source_.id;
  const train::ProgramKey key{train::Purpose::train, source_, {}, 0};
  TrainerState::EpochPrograms programs = state_.epoch_programs(key, plan_, data_.classes);
  full_ = std::move(programs.full);
  last_ = std::move(programs.last);
  if (!source_.is_resident()) stream_.emplace(state_.device, data_, plan_, options_);
  CONCORD_CHECK(
      state_.variables->read(optim::kOk).values<float>()[0] != 0, NonFinite,
      "an earlier step of this training had a loss or a gradient that is not finite; build a new trainer, or load a "
      "checkpoint into one, to go on");
}

/// Puts order, counters and the random stream of this epoch on the device; in the middle of an epoch the order only.
void Fit::begin_epoch() {
  Variables& variables = *state_.variables;
  std::vector<std::int32_t> order = order_of_epoch();
  const std::span<const std::int32_t> all(order);
  const auto in_full = static_cast<std::size_t>(plan_.full.rows * plan_.full.size);
  if (stream_) {
    order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(state_.at.position));
    stream_->start(std::move(order), state_.at.epoch);
  } else {
    variables.write(train::order_name(kRole, plan_.full),
                    Tensor::of<std::int32_t>(Shape{plan_.full.rows, plan_.full.size}, all.first(in_full)));
    if (plan_.last.size > 0) {
      variables.write(train::order_name(kRole, plan_.last),
                      Tensor::of<std::int32_t>(Shape{plan_.last.size}, all.subspan(in_full)));
    }
  }
  state_.at.batch = plan_.full.size;
  state_.at.samples = plan_.samples;
  if (state_.at.position > 0) return;
  variables.write(train::cursor_name(kRole), Tensor(DType::i32, Shape{1}));
  for (std::size_t t = 0; t < full_->terms.size(); ++t) {
    state_.set_scalar(train::loss_sum_name(kRole, t), 0);
    state_.set_scalar(train::loss_weight_name(kRole, t), 0);
  }
  if (variables.contains(kRandomState, VariableRole::random)) {
    // A stream of its own for each epoch; its words stay below 2^24, where they are exact as numbers.
    const Philox stream(state_.options.seed, philox_purpose("train.epoch"),
                        static_cast<std::uint32_t>(state_.at.epoch));
    const auto word = [&](std::uint64_t i) { return static_cast<std::int32_t>(stream.word(i) & 0xFFFFFF); };
    variables.write(kRandomState,
                    Tensor::of<std::int32_t>(Shape{4}, std::vector<std::int32_t>{word(0), word(1), 0, 0}));
  }
}

void Fit::set_rate() {
  const double wanted =
      options_.schedule(state_.recipe.optimizer.rule().lr,
                        {.step = state_.at.updates, .epoch = state_.at.epoch, .losses = state_.losses});
  const auto rate = static_cast<float>(wanted);
  CONCORD_CHECK(
      std::isfinite(rate) && wanted >= 0, ArgumentError,
      "the schedule '{}' gives the learning rate {} for step {} (epoch {}, update {}): it must be finite and not "
      "negative. The step is not done; weights and optimizer are those before it.",
      options_.schedule.description(), wanted, state_.at.step + 1, state_.at.epoch + 1, state_.at.updates + 1);
  if (rate == rate_) return;
  state_.variables->write(optim::kRate, Tensor::of<float>(Shape{}, std::vector<float>{rate}));
  rate_ = rate;
}

/// The last batch of an epoch ends a group of accumulated ones.
void Fit::set_flush(bool flush) {
  if (state_.options.accumulate == 1 || flush == flush_) return;
  state_.variables->write(optim::kFlush, Tensor::of<float>(Shape{}, std::vector<float>{flush ? 1.0F : 0.0F}));
  flush_ = flush;
}

bool Fit::stop_wanted() const {
  return training_.is_stopping() || (options_.max_steps > 0 && steps_left_ == 0) || (options_.stop && options_.stop());
}

void Fit::check_finite() {
  const timeline::Span span("wait for the loss");
  if (state_.variables->read(optim::kOk).values<float>()[0] == 0) explain_failure();
}

/// As the loader does.
void Fit::augment(Tensor& features, std::span<const std::int32_t> rows) const {
  if (!options_.augmentation) return;
  const TensorSpec spec = data_.feature_spec();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    options_.augmentation(features.bytes().subspan(i * spec.bytes(), spec.bytes()),
                          {rows[i], static_cast<std::uint32_t>(state_.at.epoch), spec});
  }
}

/// Those of the batch that comes next, in the data set.
std::vector<std::int32_t> Fit::next_rows(bool in_full) const {
  const std::vector<std::int32_t> order = order_of_epoch();
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(state_.at.position);
  return {first, first + static_cast<std::ptrdiff_t>(in_full ? plan_.full.size : plan_.last.size)};
}

/// Looks at the batch that comes next.
NonFiniteReport Fit::search_step(bool in_full) {
  const train::StepProgramPtr& step = in_full ? full_ : last_;
  if (!stream_) return search_.run(step, nullptr);
  const std::vector<std::int32_t> rows = next_rows(in_full);
  Dataset batch = data::subset(data_, rows);
  augment(batch.features, rows);
  return search_.run(step, &batch);
}

/// "step 12 (epoch 1, batch 12)", the one that comes next.
std::string Fit::next_step() const {
  return fmt::format("step {} (epoch {}, batch {})", state_.at.step + 1, state_.at.epoch + 1, batch_number() + 1);
}

/// For FitOptions::nan_trace.
void Fit::require_finite_values(bool in_full) {
  const timeline::Span span("search for values that are not finite");
  const NonFiniteReport report = search_step(in_full);
  train::require_right_index(report, next_rows(in_full), next_step(), kKept);
  CONCORD_CHECK(!report.found, NonFinite, "{} has a value that is not finite; the first is that of {}{}", next_step(),
                report.str(), kKept);
}

/// The device has kept everything as it was before the bad step: it is run again.
void Fit::explain_failure() {
  const std::int64_t counted = state_.variables->read(train::cursor_name(kRole)).values<std::int32_t>()[0];
  state_.at.step += counted - batch_number();
  state_.at.updates += updates_in(counted) - updates_in(batch_number());
  state_.at.position = counted * plan_.full.size;
  const bool in_full = counted < plan_.full.rows;
  NonFiniteReport report;
  std::string what = "the loss", where = "no single value of the step run again was found to be";
  try {
    report = search_step(in_full);
    if (report.found) where = "the first such value is that of " + report.str();
    if (const auto gradient = search_.bad_gradient(in_full ? full_ : last_)) {
      if (search_.loss_is_finite()) what = "the loss is finite, but a gradient";
      where += "; not finite is " + gradient->str();
    }
  } catch (const Error& error) {
    where = fmt::format("the step could not be run again to look for the first such value: {}", error.what());
  }
  train::require_right_index(report, next_rows(in_full), next_step(), kKept);
  throw NonFinite(
      fmt::format("{} of {} is not finite: {}{} {}", what, next_step(), where, kKept, optim::kNonFiniteAdvice));
}

/// Puts the start later by what callbacks take.
void Fit::report_steps(Clock::time_point& start, std::int64_t first_batch) {
  check_finite();
  const auto done = static_cast<double>(state_.at.position - first_batch * plan_.full.size);
  const StepReport report{
      state_.at.epoch + 1,        target_epoch_, batch_number(), plan_.batches(), loss_so_far(state_.at.position),
      done / seconds_since(start)};
  const auto reported = Clock::now();
  for (const auto& callback : options_.callbacks) callback->on_step(training_, report);
  start += Clock::now() - reported;
}

/// False when it was stopped before its end.
bool Fit::train_epoch() {
  const timeline::Span span("epoch");
  begin_epoch();
  auto start = Clock::now();
  auto reported = start;
  const std::int64_t first = batch_number();
  const std::int64_t first_position = state_.at.position;
  train::Pace pace(*state_.device);
  for (std::int64_t b = first; b < plan_.batches(); ++b) {
    if (stop_wanted()) {
      check_finite();
      return false;
    }
    set_rate();
    set_flush(b + 1 == plan_.batches());
    const bool in_full = b < plan_.full.rows;
    train::StepProgram& step = in_full ? *full_ : *last_;
    if (options_.nan_trace) require_finite_values(in_full);
    if (stream_) stream_->next(step.program);
    step.program.run();
    pace.step();
    ++state_.at.step;
    state_.at.updates += updates_in(b + 1) - updates_in(b);
    --steps_left_;
    state_.at.position += in_full ? plan_.full.size : plan_.last.size;
    const bool due = options_.report_every > 0 ? state_.at.step % options_.report_every == 0
                                               : seconds_since(reported) > kReportSeconds;
    if (due && b + 1 < plan_.batches()) {
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
  report.loss = loss_so_far(plan_.samples);
  ++state_.at.epoch;
  state_.at.position = 0;
  report.epoch = state_.at.epoch;
  report.epochs = target_epoch_;
  report.steps = state_.at.step;
  report.rate = static_cast<double>(rate_);
  report.seconds = seconds;
  report.samples_per_second = static_cast<double>(samples) / seconds;
  if (options_.validate) {
    const timeline::Span span("validation");
    report.validation =
        state_.evaluate_within_memory(*options_.validate, validation_batch_, options_.batch, options_.metrics);
    state_.losses.push_back(report.validation->loss);
  }
  history_.epochs.push_back(report);
  if (!options_.checkpoint.empty()) state_.save_checkpoint(options_.checkpoint);
  for (const auto& callback : options_.callbacks) callback->on_epoch(training_, report);
}

History Fit::run() {
  build();
  state_.compare_rates(options_.schedule);
  state_.schedule = options_.schedule.description();
  target_epoch_ = state_.at.first_epoch + options_.epochs;
  steps_left_ = options_.max_steps;
  if (options_.early_stopping) best_.emplace(state_, *options_.early_stopping);
  for (const auto& callback : options_.callbacks) callback->on_begin(training_);
  while (state_.at.epoch < target_epoch_) {
    if (!train_epoch()) {
      history_.end = History::End::stopped;
      if (state_.at.position > 0) {
        history_.stopped_loss = loss_so_far(state_.at.position);
      }
      if (!options_.checkpoint.empty()) state_.save_checkpoint(options_.checkpoint);
      break;
    }
    if (best_ && !best_->worth_going_on(history_.epochs.back())) {
      history_.end = History::End::early;
      break;
    }
  }
  if (history_.end != History::End::stopped) {
    if (best_) best_->restore_weights();
    state_.at.first_epoch = state_.at.epoch;
  }
  if (best_) history_.best_epoch = best_->epoch();
  for (const auto& callback : options_.callbacks) callback->on_end(training_, history_);
  return std::move(history_);
}

}  // namespace

History Trainer::fit(const Dataset& data, const FitOptions& options) {
  return with_state("training", [&](TrainerState& state) {
    const train::InFit in_fit(state);
    const train::FitHook hook = train::fit_hook;
    if (hook != nullptr &&
        hook({*state.recipe.network, state.recipe.loss, state.recipe.optimizer, state.options, data, options})) {
      throw FitReplaced("the training was compared on devices instead of run, as `concord compare` asked");
    }
    return Fit(*this, state, data, options).run();
  });
}

}  // namespace concord
