// Programs by posix_spawn, with one end of a pair of sockets as the channel.
#include "concord/core/reporting_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "concord/core/error.hpp"

namespace concord {
namespace {

pid_t start(const std::string& program, std::vector<std::string>& arguments, std::string variable,
            bool output_to_errors) {
  std::string name = program;
  std::vector<char*> words{name.data()}, variables{variable.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  for (char** entry = environ; *entry != nullptr; ++entry) variables.push_back(*entry);
  words.push_back(nullptr);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t files{};
  posix_spawn_file_actions_init(&files);
  if (output_to_errors) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program.c_str(), &files, nullptr, words.data(), variables.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw IoError(fmt::format("{} does not start: {}", program, std::strerror(error)));
  return process;
}

/// What came until now, or within `patience` ms; nothing when its writers are gone.
bool receive(int channel, int patience, std::string& report) {
  std::array<char, 4096> part{};
  for (;;) {
    pollfd ready{channel, POLLIN, 0};
    if (::poll(&ready, 1, patience) <= 0) return true;
    const ssize_t got = ::recv(channel, part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    report.append(part.data(), static_cast<std::size_t>(got));
  }
}

/// The status of a process that has ended, or is waited for.
std::optional<int> status_of(pid_t process, bool waits) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(process, &status, waits ? 0 : WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    return ended == process ? std::optional(status) : std::nullopt;
  }
}

}  // namespace

EndedProgram run_reporting(const std::string& program, std::vector<std::string> arguments, const std::string& variable,
                           const std::function<std::string(int channel)>& value_of, bool output_to_errors) {
  constexpr int kLook = 100;  // ms between looks whether it has ended: what it started may hold the channel longer
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    throw IoError(fmt::format("no channel to {}: {}", program, std::strerror(errno)));
  }
  const auto [ours, theirs] = ends;
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  EndedProgram ended;
  try {
    const pid_t process = start(program, arguments, fmt::format("{}={}", variable, value_of(theirs)), output_to_errors);
    ::close(theirs);
    std::optional<int> status;
    bool is_open = true;
    while (is_open && !status) {
      status = status_of(process, false);
      is_open = receive(ours, status ? 0 : kLook, ended.report);
    }
    if (!status) status = status_of(process, true);
    if (!status) {
      ended.end = "nobody knows how: its parent does not hear of children (SIGCHLD)";
    } else if (WIFSIGNALED(*status)) {
      ended.end = ::strsignal(WTERMSIG(*status));
    } else if (WEXITSTATUS(*status) != 0) {
      ended.end = fmt::format("exit code {}", WEXITSTATUS(*status));
    }
  } catch (const IoError&) {
    ::close(theirs);
    ::close(ours);
    throw;
  }
  ::close(ours);
  return ended;
}

void report_to(int channel, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(channel, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace concord
