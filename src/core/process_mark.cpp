// The count of forks, by a handler that the system calls in the child.
#include "concord/core/process_mark.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include "concord/core/error.hpp"

namespace concord {

std::atomic<std::uint32_t> ProcessMark::forks{0};

std::uint32_t ProcessMark::counted() {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

void ProcessMark::refuse(std::string_view what) {
  throw DeviceError(
      fmt::format("{} was opened before this process was forked; its threads and drivers exist only in the parent. "
                  "Open devices in the child: the CPU always, OpenCL only if the parent has not used it. Or start "
                  "another program (exec, posix_spawn)",
                  what));
}

}  // namespace concord
