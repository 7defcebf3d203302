// One line of the log for each choice.
#include "concord/opencl/launch/choice_log.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/core/log.hpp"

namespace concord::opencl {

ChoiceLog::ChoiceLog(bool is_wanted) : is_heard_(is_wanted && log_enabled(LogLevel::debug)) {}

void ChoiceLog::refused(std::string_view name, std::string_view why) {
  if (is_heard_) text_ += fmt::format("; not by \"{}\": {}", name, why);
}

void ChoiceLog::slower(std::string_view name, double seconds) {
  if (!is_heard_) return;
  refused(name, std::isfinite(seconds) ? fmt::format("{:.3g} ms are expected", seconds * 1e3) : "slower");
}

void ChoiceLog::write(std::string_view device, std::string_view problem, std::string_view chosen) const {
  if (is_heard_) log(LogLevel::debug, fmt::format("{}: {} by \"{}\"{}", device, problem, chosen, text_));
}

}  // namespace concord::opencl
