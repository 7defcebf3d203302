// Requests from standard input, each a trial of a study without a journal.
#include "concord/cli/search/ask_tell.hpp"

#include <fmt/format.h>

#include <istream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "concord/core/json.hpp"

namespace concord::cli {
namespace {

struct Request {
  nlohmann::json id;
  search::Settings settings;
};

Request request_of(const std::string& line, std::int64_t number) {
  const std::string subject = fmt::format("--ask-tell, line {}", number);
  return read_json(line, subject, [&](const nlohmann::json& json) {
    const JsonFields fields(json, subject);
    Request request{fields.at("ask"), {}};
    for (const auto& [name, value] : fields.get<nlohmann::json::object_t>("settings")) {
      request.settings.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
    }
    return request;
  });
}

/// Hands out the settings that were asked for last.
class AskedScheduler final : public search::Scheduler {
 public:
  explicit AskedScheduler(std::int64_t epochs) : epochs_(epochs) {}
  void ask(search::Settings settings) { settings_ = std::move(settings); }
  std::optional<search::Job> next() override {
    return search::Job{.trial = trial_++, .epochs = epochs_, .settings = settings_};
  }
  void report(const search::Job& /*job*/, std::optional<double> /*score*/) override {}

 private:
  std::int64_t epochs_, trial_ = 0;
  search::Settings settings_;
};

nlohmann::ordered_json answer_of(const nlohmann::json& id, const search::Trial& trial, SearchMonitor monitor) {
  nlohmann::ordered_json answer{{"tell", id}};
  if (!trial.best) {
    answer["failed"] = trial.reason;
    return answer;
  }
  const search::EpochPoint& point = trial.best->at;
  answer["value"] = monitor == SearchMonitor::accuracy ? point.accuracy.value() : point.loss;
  answer["loss"] = point.loss;
  if (point.accuracy) answer["accuracy"] = *point.accuracy;
  answer["epoch"] = point.epoch;
  answer["seconds"] = trial.seconds;
  answer["device"] = trial.device;
  return answer;
}

}  // namespace

void ask_tell(std::istream& in, std::ostream& out, TrialTraining& training, const std::vector<DevicePtr>& devices,
              std::int64_t epochs, SearchMonitor monitor) {
  auto owned = std::make_unique<AskedScheduler>(epochs);
  AskedScheduler& asked = *owned;
  search::Study study(std::move(owned), nullptr);
  std::mutex input, output;
  std::int64_t lines = 0;
  search::run_workers(study, devices.size(), [&](std::size_t worker) {
    while (true) {
      Request request;
      std::optional<search::Job> job;
      {
        const std::lock_guard lock(input);
        std::string line;
        if (stop_requested() || !std::getline(in, line)) return;
        ++lines;
        if (line.empty()) continue;
        request = request_of(line, lines);
        asked.ask(request.settings);
        job = study.take(devices[worker]->info().id);
      }
      if (!job || !training.run(study, *job, devices[worker])) return study.stop();
      const nlohmann::ordered_json answer = answer_of(request.id, study.trial(job->trial), monitor);
      const std::lock_guard lock(output);
      out << answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    }
  });
}

}  // namespace concord::cli
