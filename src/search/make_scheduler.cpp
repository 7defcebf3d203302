// Schedulers that do not look at results: random settings, and all combinations.
#include <limits>

#include "concord/core/check.hpp"
#include "concord/search/scheduler.hpp"
#include "concord/search/schedulers.hpp"

namespace concord::search {
namespace {

class Random final : public Scheduler {
 public:
  Random(Space space, const SchedulerOptions& options) : space_(std::move(space)), options_(options) {}
  std::optional<Job> next() override {
    if (trial_ == options_.trials) return std::nullopt;
    Job job{.trial = trial_, .epochs = options_.epochs, .settings = space_.draw(options_.seed, trial_)};
    ++trial_;
    return job;
  }
  void report(const Job& /*job*/, std::optional<double> /*score*/) override {}

 private:
  Space space_;
  SchedulerOptions options_;
  std::int64_t trial_ = 0;
};

class Grid final : public Scheduler {
 public:
  Grid(Space space, const SchedulerOptions& options)
      : space_(std::move(space)), epochs_(options.epochs), combinations_(space_.combinations()) {}
  std::optional<Job> next() override {
    if (trial_ == combinations_) return std::nullopt;
    Job job{.trial = trial_, .epochs = epochs_, .settings = space_.combination(trial_)};
    ++trial_;
    return job;
  }
  void report(const Job& /*job*/, std::optional<double> /*score*/) override {}

 private:
  Space space_;
  std::int64_t epochs_, combinations_;
  std::int64_t trial_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const Space& space, const SchedulerOptions& options) {
  CONCORD_CHECK(options.trials >= 1 && options.trials <= std::numeric_limits<std::uint32_t>::max(), ArgumentError,
                "a search needs at least 1 trial, got {}", options.trials);
  CONCORD_CHECK(options.epochs >= 1, ArgumentError, "a search needs at least 1 epoch, got {}", options.epochs);
  switch (options.kind) {
    case SchedulerKind::grid: return std::make_unique<Grid>(space, options);
    case SchedulerKind::asha: return make_asha(space, options);
    case SchedulerKind::tpe: return make_tpe(space, options);
    case SchedulerKind::random: break;
  }
  return std::make_unique<Random>(space, options);
}

}  // namespace concord::search
