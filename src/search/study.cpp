// The events of a study and their lines in the journal.
#include "concord/search/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/utf8.hpp"

namespace concord::search {
namespace {

nlohmann::ordered_json json_of(const EpochPoint& point) {
  nlohmann::ordered_json json{{"epoch", point.epoch}, {"train_loss", point.train_loss}, {"loss", point.loss}};
  if (point.accuracy) json["accuracy"] = *point.accuracy;
  return json;
}

/// JSON has no NaN: it is written as null.
double number_of(const JsonFields& fields, const char* name) {
  return fields.at(name).is_null() ? std::numeric_limits<double>::quiet_NaN() : fields.get<double>(name);
}

EpochPoint point_of(const JsonFields& fields) {
  EpochPoint point{fields.get<std::int64_t>("epoch"), number_of(fields, "train_loss"), number_of(fields, "loss")};
  if (fields.has("accuracy")) point.accuracy = fields.get<double>("accuracy");
  return point;
}

/// By name, as text. What is not UTF-8 is replaced, as in the journal.
nlohmann::json json_of(const Settings& settings) {
  nlohmann::json json = nlohmann::json::object();
  for (const Setting& setting : settings) json[setting.name] = setting.value;
  return json;
}

std::string text_of_settings(const nlohmann::json& settings) {
  return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string_view name_of(Trial::Status status) {
  switch (status) {
    case Trial::Status::running: return "interrupted";
    case Trial::Status::paused: return "paused";
    case Trial::Status::finished: return "finished";
    case Trial::Status::failed: break;
  }
  return "failed";
}

Study::Study(std::unique_ptr<Scheduler> scheduler, Journal* journal, std::optional<double> best)
    : scheduler_(std::move(scheduler)), journal_(journal), best_(best) {
  if (journal_ == nullptr) return;
  for (const nlohmann::json& event : journal_->events()) replay(event);
  for (const auto& [trial, job] : running_) interrupted_.push_back(job);
}

void Study::write(const nlohmann::ordered_json& event) {
  if (journal_ != nullptr) journal_->append(event);
}

std::optional<Job> Study::take(const std::string& device) {
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    if (!interrupted_.empty()) {
      const Job job = interrupted_.front();
      interrupted_.pop_front();
      trial_of(job).device = device;
      write({{"event", "resumed"}, {"trial", job.trial}, {"rung", job.rung}, {"device", device}});
      return job;
    }
    if (const std::optional<Job> job = scheduler_->next()) {
      nlohmann::ordered_json settings = nlohmann::ordered_json::object();
      for (const Setting& setting : job->settings) settings[setting.name] = setting.value;
      begin(*job, device);
      write({{"event", "started"},
             {"trial", job->trial},
             {"rung", job->rung},
             {"epochs", job->epochs},
             {"settings", settings},
             {"device", device}});
      return job;
    }
    if (running_.empty()) {
      is_done_ = true;
      changed_.notify_all();
      return std::nullopt;
    }
    changed_.wait(lock);
    if (is_done_) return std::nullopt;
  }
  return std::nullopt;
}

void Study::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

bool Study::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

void Study::begin(const Job& job, const std::string& device) {
  if (job.trial == std::ssize(trials_)) trials_.push_back({.number = job.trial, .settings = job.settings});
  Trial& trial = trial_of(job);
  trial.status = Trial::Status::running;
  trial.device = device;
  running_.insert_or_assign(job.trial, job);
}

void Study::note_epoch(const Job& job, const EpochPoint& point) {
  const std::lock_guard lock(mutex_);
  trial_of(job).curve.insert_or_assign(point.epoch, point);
  nlohmann::ordered_json event{{"event", "epoch"}, {"trial", job.trial}};
  event.update(json_of(point));
  write(event);
}

void Study::enter(const Job& job, const Measured& measured) {
  Trial& trial = trial_of(job);
  trial.status = job.is_last ? Trial::Status::finished : Trial::Status::paused;
  trial.epochs = job.epochs;
  trial.seconds += measured.seconds;
  if (!trial.best || measured.score < trial.best->score) trial.best = measured;
  best_ = std::min(best_.value_or(measured.score), measured.score);
  running_.erase(job.trial);
  scheduler_->report(job, measured.score);
}

void Study::reach(const Job& job, const Measured& measured, const std::function<void()>& keep) {
  const std::lock_guard lock(mutex_);
  const bool is_best = !best_ || measured.score < *best_;
  if (is_best && keep) keep();
  enter(job, measured);
  nlohmann::ordered_json event{{"event", job.is_last ? "finished" : "rung"}, {"trial", job.trial}, {"rung", job.rung}};
  event.update(json_of(measured.at));
  event["score"] = measured.score;
  event["seconds"] = measured.seconds;
  write(event);
  if (observer_) observer_(job, trial_of(job), measured, is_best);
  changed_.notify_all();
}

void Study::enter_failure(const Job& job, const std::string& reason) {
  Trial& trial = trial_of(job);
  trial.status = Trial::Status::failed;
  trial.reason = reason;
  running_.erase(job.trial);
  scheduler_->report(job, std::nullopt);
}

void Study::fail(const Job& job, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  enter_failure(job, reason);
  write({{"event", "failed"}, {"trial", job.trial}, {"rung", job.rung}, {"reason", reason}});
  changed_.notify_all();
}

const Job& Study::running_job(std::int64_t trial) const {
  const auto found = running_.find(trial);
  CONCORD_CHECK(found != running_.end(), FormatError, "{}: trial {} is not running where it has a result",
                journal_->file().string(), trial);
  return found->second;
}

void Study::replay(const nlohmann::json& event) {
  const JsonFields fields(event, journal_->file().string());
  const auto what = fields.get<std::string>("event");
  const auto number = fields.get<std::int64_t>("trial");
  if (what == "started") {
    const std::optional<Job> job = scheduler_->next();
    CONCORD_CHECK(job, ArgumentError, "{} has more trials than this search: give at least as many with --trials",
                  journal_->file().string());
    CONCORD_CHECK(job->trial == number && job->rung == fields.get<std::int64_t>("rung"), FormatError,
                  "{}: trial {} does not follow from the events before it; the file was changed, or written by another "
                  "version of this program",
                  journal_->file().string(), number);
    const std::string given = text_of_settings(fields.at("settings")), own = text_of_settings(json_of(job->settings));
    CONCORD_CHECK(
        given == own, FormatError,
        "{}: trial {} has the settings {}, and this search would give it {}; the file was changed, or written "
        "by another version of this program",
        journal_->file().string(), number, printable(given), printable(own));
    begin(*job, fields.get<std::string>("device"));
    return;
  }
  const Job job = running_job(number);
  if (what == "resumed") {
    trial_of(job).device = fields.get<std::string>("device");
  } else if (what == "epoch") {
    const EpochPoint point = point_of(fields);
    trial_of(job).curve.insert_or_assign(point.epoch, point);
  } else if (what == "rung" || what == "finished") {
    enter(job, {point_of(fields), fields.get<double>("score"), fields.get<double>("seconds")});
  } else if (what == "failed") {
    enter_failure(job, fields.get<std::string>("reason"));
  } else {
    throw FormatError(fmt::format("{}: there is no event '{}'", journal_->file().string(), what));
  }
}

std::vector<const Trial*> Study::ranking() const {
  std::vector<const Trial*> ranking;
  for (const Trial& trial : trials_) {
    if (trial.best) ranking.push_back(&trial);
  }
  std::ranges::stable_sort(ranking, {}, [](const Trial* trial) { return trial->best->score; });
  return ranking;
}

Trial Study::trial(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  return trials_.at(static_cast<std::size_t>(number));
}

std::optional<EpochPoint> Study::point(std::int64_t trial, std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  const auto& curve = trials_.at(static_cast<std::size_t>(trial)).curve;
  const auto found = curve.find(epoch);
  return found == curve.end() ? std::nullopt : std::optional(found->second);
}

void run_workers(Study& study, std::size_t workers, const std::function<void(std::size_t worker)>& work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](const auto& what) {
    try {
      what();
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
      study.stop();
    }
  };
  std::vector<std::thread> threads;
  guarded([&] {
    for (std::size_t worker = 1; worker < workers; ++worker) {
      threads.emplace_back([&, worker] { guarded([&] { work(worker); }); });
    }
    work(0);
  });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace concord::search
