// Requests from standard input, each a trial of a study without a journal.
#include "concord/cli/search/ask_tell.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include "concord/core/check.hpp"
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

/// Lines of a descriptor. While it waits for one it looks whether it is to end.
class RequestLines {
 public:
  explicit RequestLines(int descriptor) : descriptor_(descriptor) {}

  /// The next line; nothing at the end of the input, or once `is_over`.
  [[nodiscard]] std::optional<std::string> next(const std::function<bool()>& is_over) {
    while (!is_over()) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) return taken(end, end + 1);
      if (is_at_end_) return text_.empty() ? std::nullopt : std::optional(taken(text_.size(), text_.size()));
      read_some();
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string taken(std::size_t end, std::size_t next) {
    std::string line = text_.substr(0, end);
    text_.erase(0, next);
    return line;
  }

  void read_some() {
    constexpr int kMilliseconds = 100;
    pollfd input{descriptor_, POLLIN, 0};
    if (::poll(&input, 1, kMilliseconds) <= 0) return;  // or a signal has come
    std::array<char, 4096> block{};
    const ssize_t bytes = ::read(descriptor_, block.data(), block.size());
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
    CONCORD_CHECK(bytes >= 0, IoError, "--ask-tell: the input cannot be read: {}",
                  std::generic_category().message(errno));
    is_at_end_ = bytes == 0;
    text_.append(block.data(), static_cast<std::size_t>(bytes));
  }

  int descriptor_;
  std::string text_;  // what was read behind the last line
  bool is_at_end_ = false;
};

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

void ask_tell(int in, std::ostream& out, TrialTraining& training, const std::vector<DevicePtr>& devices,
              std::int64_t epochs, SearchMonitor monitor, std::optional<double> best) {
  auto owned = std::make_unique<AskedScheduler>(epochs);
  AskedScheduler& asked = *owned;
  search::Study study(std::move(owned), nullptr, best);
  std::mutex input, output;
  RequestLines requests(in);
  std::int64_t lines = 0;
  const auto is_over = [&] { return stop_requested() || study.is_stopped(); };
  search::run_workers(study, devices.size(), [&](std::size_t worker) {
    while (true) {
      Request request;
      std::optional<search::Job> job;
      {
        const std::lock_guard lock(input);
        const std::optional<std::string> line = requests.next(is_over);
        if (!line) return;
        ++lines;
        if (line->empty()) continue;
        request = request_of(*line, lines);
        asked.ask(request.settings);
        job = study.take(devices[worker]->info().id);
      }
      if (!job || !training.run(study, *job, devices[worker])) return study.stop();
      const nlohmann::ordered_json answer = answer_of(request.id, study.trial(job->trial), monitor);
      const std::lock_guard lock(output);
      out << answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
      CONCORD_CHECK(out.good(), IoError, "--ask-tell: the result of a trial cannot be written; is its reader gone?");
    }
  });
}

}  // namespace concord::cli
