// JsonLog: reports as JSON objects.
#include "concord/train/json_log.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "concord/core/check.hpp"

namespace concord {
namespace {

nlohmann::ordered_json json_of(const Metrics& metrics) {
  nlohmann::ordered_json json{{"loss", metrics.loss}};
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (metrics.top_k) {
    json["top_k"] = *metrics.top_k;
    json["k"] = metrics.k;
  }
  json["samples"] = metrics.samples;
  if (!metrics.named.empty()) json["metrics"] = metrics.named;
  return json;
}

const char* name_of(History::End end) {
  switch (end) {
    case History::End::finished: return "finished";
    case History::End::stopped: return "stopped";
    case History::End::early: return "early";
  }
  return "unknown";
}

}  // namespace

JsonLog::JsonLog(std::filesystem::path path) : path_(std::move(path)), file_(path_, std::ios::app) {
  CONCORD_CHECK(file_.is_open(), IoError, "{}: cannot be opened for writing: {}", path_.string(),
                std::generic_category().message(errno));
}

void JsonLog::write(const std::string& line) {
  file_ << line << std::endl;
  CONCORD_CHECK(file_.good(), IoError, "{}: cannot be written: {}", path_.string(),
                std::generic_category().message(errno));
}

void JsonLog::on_epoch(const EpochReport& report) {
  nlohmann::ordered_json json{{"event", "epoch"},
                              {"epoch", report.epoch},
                              {"steps", report.steps},
                              {"loss", report.loss},
                              {"rate", report.rate},
                              {"seconds", report.seconds},
                              {"samples_per_second", report.samples_per_second},
                              {"waiting", report.waiting}};
  if (report.validation) json["validation"] = json_of(*report.validation);
  write(json.dump());
}

void JsonLog::on_end(const History& history) {
  write(nlohmann::ordered_json{{"event", "end"}, {"reason", name_of(history.end)}}.dump());
}

void JsonLog::on_test(const Metrics& metrics) {
  write(nlohmann::ordered_json{{"event", "test"}, {"test", json_of(metrics)}}.dump());
}

}  // namespace concord
