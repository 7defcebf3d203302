// Log: what the library has to say besides results and exceptions. Silent unless a callback is set. Used by every room.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error".
[[nodiscard]] std::string_view name_of(LogLevel level);

/// Called with one line, without a line end; calls never overlap. Must not call `log` or `set_log`.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

/// From now on `callback` gets every message of `least` or above; an empty callback silences the library.
void set_log(LogCallback callback, LogLevel least = LogLevel::info);

/// Whether a message of this level would be heard; saves building one that is not.
[[nodiscard]] bool log_enabled(LogLevel level);

/// Hands `message` to the callback, from any thread.
void log(LogLevel level, std::string_view message);

}  // namespace concord
