// Trials by fork, with the copy's standard error in a pipe.
#include "concord/core/trial.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReturned = 86;  // not 0, with which the work may call exit()

[[noreturn]] void work_as_copy(const std::function<void()>& work, int words) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  try {
    work();
  } catch (const std::exception&) {  // for the caller's own try to meet
  }
  ::_exit(kReturned);
}

/// All that comes until its writers are gone; false at the deadline.
bool hear(int channel, Clock::time_point deadline, std::string& words) {
  std::array<char, 4096> part{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{channel, POLLIN, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return false;
    const ssize_t got = ::read(channel, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    words.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::string last_line(std::string_view words) {
  const std::size_t end = words.find_last_not_of(" \r\n\t");
  if (end == std::string_view::npos) return {};
  words = words.substr(0, end + 1);
  return std::string(words.substr(words.find_last_of('\n') + 1));
}

}  // namespace

Trial try_in_copy(const std::function<void()>& work, std::chrono::seconds patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const auto [ours, theirs] = ends;
  const pid_t copy = ::fork();
  if (copy == 0) work_as_copy(work, theirs);
  ::close(theirs);
  if (copy < 0) {
    ::close(ours);
    return {};
  }
  std::string words;
  const bool ended = hear(ours, Clock::now() + patience, words);
  ::close(ours);
  if (!ended) ::kill(copy, SIGKILL);
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(copy, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended && waited < 0) return {};  // SIGCHLD is ignored: nobody knows
  Trial trial{.returned = false, .end = {}, .last_words = last_line(words)};
  if (!ended) {
    trial.end = fmt::format("no answer for {} s", patience.count());
  } else if (WIFSIGNALED(status)) {
    trial.end = ::strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != kReturned) {
    trial.end = fmt::format("exit code {}", WEXITSTATUS(status));
  } else {
    trial.returned = true;
  }
  return trial;
}

}  // namespace concord
