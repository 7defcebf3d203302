// Reads Chrome's trace-event format as core/timeline.cpp writes it. The launches of a training step have a "pass", and
// the first of them says what "begins" (compile/trace.cpp).
#include "concord/plan/recorded_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/median.hpp"

namespace concord::plan {
namespace {

constexpr std::string_view kKernels = " kernels", kGradient = "gradient ";

/// Of one step, in microseconds of the trace. Between the backward pass and the update of several ranks lies their
/// exchange.
struct Step {
  double begin = 0, backward = -1, backward_end = -1, update = -1, end = -1;
  std::map<std::string, std::pair<std::size_t, double>> gradients;  // bytes, and when they are complete
  [[nodiscard]] bool is_whole() const {
    return backward >= begin && backward_end >= backward && end >= update && update >= backward_end &&
           !gradients.empty();
  }
};

/// The steps of one track.
class Steps {
 public:
  void add(const nlohmann::json& event, const nlohmann::json& arguments) {
    const double begin = event.at("ts").get<double>(), end = begin + event.at("dur").get<double>();
    const std::string part = arguments.value("begins", "");
    if (part == "step" || part == "before exchange") steps_.emplace_back().begin = begin;
    if (steps_.empty()) return;  // of a step that began before the recording
    Step& step = steps_.back();
    const std::string pass = arguments.at("pass").get<std::string>();
    if (pass == "gradient") {
      if (step.backward < 0) step.backward = begin;
      step.backward_end = end;
    } else if (pass == "update") {
      if (step.update < 0) step.update = part == "after exchange" ? begin : step.backward_end;
      step.end = end;
    }
    for (const auto& [key, value] : arguments.items()) {
      if (key.starts_with(kGradient)) step.gradients[key.substr(kGradient.size())] = {value.get<std::size_t>(), end};
    }
  }

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

/// The shortest of each size: the others waited for a rank that was late.
void add_exchange(std::vector<MeasuredExchange>& exchanges, const MeasuredExchange& one) {
  const auto same = std::ranges::find_if(
      exchanges, [&](const MeasuredExchange& other) { return other.bytes == one.bytes && other.ranks == one.ranks; });
  if (same == exchanges.end()) {
    exchanges.push_back(one);
  } else {
    same->seconds = std::min(same->seconds, one.seconds);
  }
}

/// The medians of the steps but for the first ones.
RecordedStep summary_of(const std::vector<Step>& steps) {
  constexpr std::size_t kMostWarm = 5;
  const std::size_t first = std::min(kMostWarm, steps.size() / 4);
  RecordedStep recorded;
  std::vector<double> forward, backward, update, idle;
  std::map<std::string, std::pair<std::size_t, std::vector<double>>> gradients;
  for (std::size_t i = first; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (!step.is_whole()) continue;
    ++recorded.steps;
    forward.push_back(step.backward - step.begin);
    backward.push_back(step.backward_end - step.begin);
    update.push_back(step.end - step.update);
    if (i + 1 < steps.size()) idle.push_back(std::max(0.0, steps[i + 1].begin - step.end));
    recorded.computations.push_back((step.backward_end - step.begin) / 1e6);
    for (const auto& [parameter, gradient] : step.gradients) {
      gradients[parameter].first = gradient.first;
      gradients[parameter].second.push_back(gradient.second - step.begin);
    }
  }
  recorded.forward = median(forward) / 1e6;
  recorded.backward = median(backward) / 1e6 - recorded.forward;
  recorded.update = median(update) / 1e6;
  recorded.idle = median(idle) / 1e6;
  for (const auto& [parameter, gradient] : gradients) {
    const double ready = std::min(median(gradient.second) / 1e6, recorded.forward + recorded.backward);
    recorded.gradients.push_back({parameter, gradient.first, ready});
  }
  std::ranges::stable_sort(recorded.gradients, {}, &Gradient::ready);
  return recorded;
}

RecordedStep read(const nlohmann::json& document, std::string_view subject) {
  std::map<std::int64_t, std::string> names;
  std::map<std::int64_t, Steps> tracks;
  std::vector<MeasuredExchange> exchanges;
  int ranks = 1;
  const nlohmann::json& events = document.at("traceEvents");
  for (const nlohmann::json& event : events) {
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
  }
  for (const nlohmann::json& event : events) {
    if (event.at("ph") != "X") continue;
    const nlohmann::json& arguments = event.at("args");
    if (arguments.contains("pass")) tracks[event.at("tid")].add(event, arguments);
    if (event.at("name") != "sum over ranks" || !arguments.contains("ranks")) continue;
    ranks = arguments.at("ranks");
    const double seconds = event.at("dur").get<double>() / 1e6;
    if (seconds > 0) add_exchange(exchanges, {arguments.at("bytes").get<double>(), ranks, seconds});
  }
  const auto most = std::ranges::max_element(tracks, {}, [](const auto& track) { return track.second.steps().size(); });
  const bool has_steps = most != tracks.end() && names[most->first].find(kKernels) != std::string::npos;
  RecordedStep recorded = has_steps ? summary_of(most->second.steps()) : RecordedStep{};
  CONCORD_CHECK(recorded.steps > 0, FormatError,
                "{}: it has no training step; record one with `concord train NET --trace FILE` or `concord bench NET "
                "--trace FILE`",
                subject);
  recorded.device = names[most->first].substr(0, names[most->first].find(kKernels));
  recorded.ranks = ranks;
  recorded.exchanges = std::move(exchanges);
  return recorded;
}

}  // namespace

std::size_t RecordedStep::bytes() const {
  std::size_t sum = 0;
  for (const Gradient& gradient : gradients) sum += gradient.bytes;
  return sum;
}

RecordedStep RecordedStep::scaled(double factor) const {
  RecordedStep other = *this;
  for (double* time : {&other.forward, &other.backward, &other.update, &other.idle}) *time *= factor;
  for (Gradient& gradient : other.gradients) gradient.ready *= factor;
  for (double& time : other.computations) time *= factor;
  return other;
}

RecordedStep read_trace(std::string_view text, std::string_view subject) {
  constexpr JsonLimits kLimits{.bytes = std::size_t{1} << 30};
  const nlohmann::json document = parse_json(text, subject, kLimits);
  try {
    return read(document, subject);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_json(error, subject);
  }
}

}  // namespace concord::plan
