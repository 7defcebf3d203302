// ASHA: asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", arXiv
// 1810.05934, algorithm 2).
#include <algorithm>
#include <limits>
#include <set>

#include "concord/core/check.hpp"
#include "concord/search/schedulers.hpp"

namespace concord::search {
namespace {

/// The trials that have reached a rung.
struct Rung {
  std::int64_t epochs = 0;
  std::set<std::pair<double, std::int64_t>> reached = {};  // score and trial, the best first
  std::set<std::int64_t> promoted = {};

  /// A trial of the best part that is not promoted yet. Failed trials count, but are never promoted.
  [[nodiscard]] std::optional<std::int64_t> to_promote(int eta) const {
    std::size_t left = reached.size() / static_cast<std::size_t>(eta);
    for (const auto& [score, trial] : reached) {
      if (left-- == 0 || score == std::numeric_limits<double>::infinity()) break;
      if (!promoted.contains(trial)) return trial;
    }
    return std::nullopt;
  }
};

class Asha final : public Scheduler {
 public:
  Asha(Space space, const SchedulerOptions& options) : space_(std::move(space)), options_(options) {
    for (std::int64_t epochs = options.min_epochs; epochs < options.epochs; epochs *= options.eta) {
      rungs_.push_back({epochs});
      if (epochs > options.epochs / options.eta) break;
    }
    rungs_.push_back({options.epochs});
  }

  std::optional<Job> next() override {
    for (std::size_t rung = rungs_.size() - 1; rung-- > 0;) {
      if (const auto trial = rungs_[rung].to_promote(options_.eta)) {
        rungs_[rung].promoted.insert(*trial);
        return job_of(*trial, rung + 1);
      }
    }
    if (trials_ == options_.trials) return std::nullopt;
    return job_of(trials_++, 0);
  }

  void report(const Job& job, std::optional<double> score) override {
    rungs_.at(static_cast<std::size_t>(job.rung))
        .reached.emplace(score.value_or(std::numeric_limits<double>::infinity()), job.trial);
  }

 private:
  [[nodiscard]] Job job_of(std::int64_t trial, std::size_t rung) const {
    return {trial, static_cast<std::int64_t>(rung), rungs_[rung].epochs, rung + 1 == rungs_.size(),
            space_.draw(options_.seed, trial)};
  }

  Space space_;
  SchedulerOptions options_;
  std::vector<Rung> rungs_;
  std::int64_t trials_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_asha(const Space& space, const SchedulerOptions& options) {
  CONCORD_CHECK(options.eta >= 2, ArgumentError, "asha promotes one in eta trials: eta is at least 2, got {}",
                options.eta);
  CONCORD_CHECK(options.min_epochs >= 1 && options.min_epochs < options.epochs, ArgumentError,
                "asha compares trials after {} of {} epoch{}: the first number is from 1 to below the second",
                options.min_epochs, options.epochs, options.epochs == 1 ? "" : "s");
  return std::make_unique<Asha>(space, options);
}

}  // namespace concord::search
