// Log: messages of the library besides results and exceptions. The library is silent until a callback is set.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error".
[[nodiscard]] std::string_view name_of(LogLevel level);

/// Receives one line without a line end. Calls never overlap. The callback must not call `log` or `set_log`.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

/// Sends every message of level `least` or above to `callback`. An empty callback silences the library.
void set_log(LogCallback callback, LogLevel least = LogLevel::info);

/// Returns whether the callback would receive a message of this level. Check it before building an expensive message.
[[nodiscard]] bool log_enabled(LogLevel level);

/// Sends `message` to the callback. Any thread may call it.
void log(LogLevel level, std::string_view message);

}  // namespace concord
