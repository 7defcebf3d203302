// Signals that a process was started to ignore.
#pragma once

namespace concord {

/// Whether the process ignored the signal when it began, as it does SIGHUP under nohup: it should go on to. One of
/// SIGINT, SIGTERM and SIGHUP.
[[nodiscard]] bool was_ignored_at_start(int signal);

}  // namespace concord
