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
#include <thread>

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

/// What comes within `patience` ms; false when its writers are gone.
bool hear(int channel, int patience, std::string& words) {
  std::array<char, 4096> part{};
  for (;;) {
    pollfd ready{channel, POLLIN, 0};
    const int found = ::poll(&ready, 1, patience);
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return true;
    const ssize_t got = ::read(channel, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    words.append(part.data(), static_cast<std::size_t>(got));
    patience = 0;
  }
}

enum class State : std::uint8_t { runs, ended, unknown };

/// `status` is that of a copy that has ended. Unknown where SIGCHLD is ignored.
State state_of(pid_t copy, bool waits, int& status) {
  for (;;) {
    const pid_t waited = ::waitpid(copy, &status, waits ? 0 : WNOHANG);
    if (waited < 0 && errno == EINTR) continue;
    return waited == copy ? State::ended : waited == 0 ? State::runs : State::unknown;
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
  constexpr int kLook = 50;  // ms between looks whether it has ended: what it started may hold the pipe longer
  const Clock::time_point deadline = Clock::now() + patience;
  std::string words;
  int status = 0;
  State state = State::runs;
  for (bool is_open = true; state == State::runs && Clock::now() < deadline;) {
    if (is_open) {
      is_open = hear(ours, kLook, words);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    state = state_of(copy, false, status);
  }
  if (state != State::runs) hear(ours, 0, words);
  ::close(ours);
  if (state == State::unknown) return {};
  Trial trial{.returned = false, .end = {}, .last_words = last_line(words)};
  if (state == State::runs) {
    ::kill(copy, SIGKILL);
    state_of(copy, true, status);
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
