// Tables and sizes for people, and the signals that stop a training.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/core/ignored_signals.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

volatile std::sig_atomic_t signals = 0;
volatile std::sig_atomic_t first_at = 0;  // by the monotonic clock, in milliseconds

std::sig_atomic_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::int64_t kRange = std::int64_t{1} << 30;
  return static_cast<std::sig_atomic_t>((now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1000000) % kRange);
}

/// Ends the process when the user repeats it. One request may come from several senders: a scheduler or a terminal, and
/// launchers that pass it on to the ranks.
extern "C" void on_signal(int number) {
  const std::sig_atomic_t one_request = number == SIGINT ? 1000 : 10000;
  signals = signals + 1;
  if (signals == 1) first_at = milliseconds_now();
  const std::sig_atomic_t since = milliseconds_now() - first_at;
  const bool is_repeated = signals > 1 && (since > one_request || since < 0);
  if (is_repeated) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

/// Writing to a reader that went away is an error of the write alone. Programs that are started get the default back,
/// which they do not where a signal is ignored.
extern "C" void on_broken_pipe(int) {}

// Terminal columns of UTF-8 text: bytes that begin a character.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(const std::string& cell) {
  const std::size_t start = !cell.empty() && cell[0] == '-' ? 1 : 0;
  const std::string number = cell.substr(start, cell.find_first_of(" %", start) - start);  // what follows is its unit
  const bool is_name = number.find_first_not_of("0123456789.,e+-x") != std::string::npos;  // such as 3/add, 5.weight
  return !is_name && cell.size() > start && is_digit(cell[start]);
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = escaped(cell);
  }
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - width(row[c]), ' ');
      const bool right = &row != &rows.front() && is_number(row[c]);
      line += (c == 0 ? "" : "  ") + (right ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string json_text(const nlohmann::json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string without_name(std::string_view message, std::string_view sample) {
  const std::string name = printable(sample) + ": ";
  return std::string(message.starts_with(name) ? message.substr(name.size()) : message);
}

void say(const std::string& line) { std::fputs((escaped(line, "\n\t") + "\n").c_str(), stderr); }

void say_log(LogLevel level, std::string_view text) { say(fmt::format("{}: {}", name_of(level), text)); }

void log_to_standard_error(bool verbose) { set_log(say_log, verbose ? LogLevel::debug : LogLevel::warning); }

void catch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {  // the last: a terminal that went away
    std::signal(number, was_ignored_at_start(number) ? SIG_IGN : on_signal);
  }
  if (std::signal(SIGPIPE, on_broken_pipe) == SIG_IGN) std::signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return signals > 0; }

}  // namespace concord::cli
