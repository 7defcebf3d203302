// Study: the trials of a search and what they have reached. Hands jobs to workers, takes their results, writes both to
// the journal, and rebuilds itself from one. Internal to the library.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/search/journal.hpp"
#include "concord/search/scheduler.hpp"

namespace concord::search {

/// An epoch of a trial.
struct EpochPoint {
  std::int64_t epoch = 0;           // from 1
  double train_loss = 0, loss = 0;  // of training and validation
  std::optional<double> accuracy = std::nullopt;
};

/// What a trial has reached at the end of a rung.
struct Measured {
  EpochPoint at;
  double score = 0;    // the smaller, the better
  double seconds = 0;  // of this job
};

struct Trial {
  enum class Status : std::uint8_t { running, paused, finished, failed };
  std::int64_t number = 0;  // from 0
  Settings settings;
  Status status = Status::running;
  std::string device = {}, reason = {};  // the reason of a failed trial
  std::int64_t epochs = 0;               // of the last rung that it has reached
  double seconds = 0;
  std::map<std::int64_t, EpochPoint> curve = {};  // by epoch
  std::optional<Measured> best = std::nullopt;    // of the ends of its rungs
};
[[nodiscard]] std::string_view name_of(Trial::Status status);

/// Called by several threads.
class Study {
 public:
  /// Without a journal nothing is kept. `best`: the score of the best trial of an earlier search, whose weights are
  /// kept. Throws FormatError if the events of the journal do not fit the scheduler.
  Study(std::unique_ptr<Scheduler> scheduler, Journal* journal, std::optional<double> best = {});

  /// The next job for a worker: one that was interrupted by the end of an earlier process, or a new one. Waits while
  /// the scheduler does. Nothing once all is done or after `stop`.
  [[nodiscard]] std::optional<Job> take(const std::string& device);
  /// No job is handed out any more.
  void stop();
  [[nodiscard]] bool is_stopped() const;

  /// Calls `observer` at the end of each rung, one call at a time. Call it before the workers run.
  using Observer = std::function<void(const Job&, const Trial&, const Measured&, bool is_best)>;
  void watch(Observer observer) { observer_ = std::move(observer); }

  void note_epoch(const Job& job, const EpochPoint& point);
  /// `keep` is called if no trial was as good so far, before the journal has the result: the weights are kept then.
  void reach(const Job& job, const Measured& measured, const std::function<void()>& keep = {});
  void fail(const Job& job, const std::string& reason);

  /// Only while no worker runs.
  [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }
  /// The measured trials, the best first.
  [[nodiscard]] std::vector<const Trial*> ranking() const;
  /// Whether no job is left.
  [[nodiscard]] bool is_done() const { return is_done_; }
  /// A copy of a trial, while workers run too.
  [[nodiscard]] Trial trial(std::int64_t number) const;
  /// The point of an epoch that the journal has.
  [[nodiscard]] std::optional<EpochPoint> point(std::int64_t trial, std::int64_t epoch) const;

 private:
  void replay(const nlohmann::json& event);
  void begin(const Job& job, const std::string& device);
  void enter(const Job& job, const Measured& measured);
  void enter_failure(const Job& job, const std::string& reason);
  [[nodiscard]] const Job& running_job(std::int64_t trial) const;
  [[nodiscard]] Trial& trial_of(const Job& job) { return trials_.at(static_cast<std::size_t>(job.trial)); }
  void write(const nlohmann::ordered_json& event);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Scheduler> scheduler_;
  Journal* journal_;
  std::vector<Trial> trials_;
  std::map<std::int64_t, Job> running_;  // by trial
  std::deque<Job> interrupted_;
  std::optional<double> best_;
  Observer observer_;
  bool is_stopped_ = false, is_done_ = false;
};

/// Runs `work` for workers 0 … workers-1, each in a thread of its own. If one throws, or
/// cannot be started, `study` is stopped, and the first exception is rethrown once all have ended.
void run_workers(Study& study, std::size_t workers, const std::function<void(std::size_t worker)>& work);

}  // namespace concord::search
