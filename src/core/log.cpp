// Log: one process-wide callback behind a mutex.
#include "concord/core/log.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace concord {
namespace {

constexpr int kSilent = 255;

struct State {
  std::mutex mutex;
  LogCallback callback;
  std::atomic<int> least{kSilent};
};

// Never destroyed: threads may still log while the process ends.
State& state() {
  static State& instance = *new State;  // NOLINT(cppcoreguidelines-owning-memory)
  return instance;
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "unknown";
}

void set_log(LogCallback callback, LogLevel least) {
  State& log_state = state();
  const std::lock_guard lock(log_state.mutex);
  log_state.least = callback ? static_cast<int>(least) : kSilent;
  log_state.callback = std::move(callback);
}

bool log_enabled(LogLevel level) { return static_cast<int>(level) >= state().least; }

void log(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  State& log_state = state();
  const std::lock_guard lock(log_state.mutex);
  if (log_state.callback) log_state.callback(level, message);
}

}  // namespace concord
