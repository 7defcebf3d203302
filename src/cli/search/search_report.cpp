// The table and the JSON of a search.
#include "concord/cli/search/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "concord/cli/counted.hpp"

namespace concord::cli {
namespace {

using search::Trial;

constexpr std::size_t kMostRows = 10, kMostReasons = 5;

std::int64_t count_of(const search::Study& study, Trial::Status status) {
  return std::ranges::count(study.trials(), status, &Trial::status);
}

std::string failures_of(const search::Study& study) {
  std::map<std::string, std::vector<std::int64_t>> by_reason;
  for (const Trial& trial : study.trials()) {
    if (trial.status == Trial::Status::failed) by_reason[trial.reason].push_back(trial.number);
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [reason, trials] : by_reason) {
    if (++shown > kMostReasons) break;
    text += trials.size() == 1 ? fmt::format("trial {} failed: {}\n", trials[0], reason)
                               : fmt::format("{} trials failed, such as {}: {}\n", trials.size(), trials[0], reason);
  }
  return text;
}

}  // namespace

std::string settings_text(const search::Settings& settings) {
  std::string text;
  for (const search::Setting& setting : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.name, setting.value);
  }
  return text;
}

std::string search_table(const SearchReport& report) {
  const std::vector<const Trial*> ranking = report.study.ranking();
  std::vector<std::vector<std::string>> cells{{"trial"}};
  for (const search::Parameter& parameter : report.space.parameters()) cells[0].push_back(parameter.name);
  const bool is_loss = report.monitor == SearchMonitor::loss;
  for (const char* column : {is_loss ? "loss" : "accuracy %", "epoch", "epochs", "seconds", "device"}) {
    cells[0].emplace_back(column);
  }
  for (std::size_t i = 0; i < std::min(ranking.size(), kMostRows); ++i) {
    const Trial& trial = *ranking[i];
    std::vector<std::string>& line = cells.emplace_back();
    line.push_back(fmt::format("{}", trial.number));
    for (const search::Setting& setting : trial.settings) line.push_back(setting.value);
    const double metric = report.metric_of(trial.best->at);
    line.push_back(is_loss ? fmt::format("{:.4g}", metric) : fmt::format("{:.2f}", 100 * metric));
    line.push_back(fmt::format("{}", trial.best->at.epoch));
    line.push_back(fmt::format("{}", trial.epochs));
    line.push_back(fmt::format("{:.1f}", trial.seconds));
    line.push_back(trial.device);
  }
  std::string text = ranking.empty() ? std::string() : table(cells);
  const std::int64_t paused = count_of(report.study, Trial::Status::paused);
  text += counted(std::ssize(report.study.trials()), "trial");
  if (paused > 0) text += fmt::format(", {} of them stopped early", paused);
  return text + "\n" + failures_of(report.study);
}

nlohmann::ordered_json search_json(const SearchReport& report) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const Trial& trial : report.study.trials()) {
    nlohmann::ordered_json settings = nlohmann::ordered_json::object();
    for (const search::Setting& setting : trial.settings) settings[setting.name] = setting.value;
    nlohmann::ordered_json json{
        {"trial", trial.number},  {"settings", settings},     {"status", std::string(name_of(trial.status))},
        {"epochs", trial.epochs}, {"seconds", trial.seconds}, {"device", trial.device}};
    if (trial.status == Trial::Status::failed) json["reason"] = trial.reason;
    if (trial.best) {
      json["best"] = {{"epoch", trial.best->at.epoch}, {"loss", trial.best->at.loss}};
      if (trial.best->at.accuracy) json["best"]["accuracy"] = *trial.best->at.accuracy;
    }
    trials.push_back(std::move(json));
  }
  nlohmann::ordered_json json{
      {"network", report.network},       {"data", report.data}, {"scheduler", report.scheduler},
      {"monitor", report.metric_name()}, {"trials", trials},    {"uploaded_bytes", report.uploaded_bytes},
      {"seconds", report.seconds}};
  if (const auto ranking = report.study.ranking(); !ranking.empty()) json["best_trial"] = ranking[0]->number;
  return json;
}

}  // namespace concord::cli
