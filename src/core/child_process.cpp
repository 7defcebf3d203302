// The channel is a pair of sockets. Programs start by posix_spawn, copies by fork.
#include "concord/core/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "concord/core/error.hpp"

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkReturned = 86;  // not 0, with which the work may call exit()

/// Sends without SIGPIPE, which the system raises if there is no reader.
bool send_all(int channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

enum class Received : std::uint8_t { some, nothing_yet, end };

/// Reads the bytes that are available, or that arrive within `patience` ms. `bytes` becomes the part that was filled.
Received receive_some(int channel, int patience, std::span<char>& bytes) {
  for (;;) {
    pollfd ready{channel, POLLIN, 0};
    const int found = ::poll(&ready, 1, patience);
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return Received::nothing_yet;
    const ssize_t got = ::recv(channel, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::end;
    bytes = bytes.first(static_cast<std::size_t>(got));
    return Received::some;
  }
}

bool receive_all(int channel, std::span<char> bytes, std::chrono::seconds patience) {
  const auto wait = static_cast<int>(std::chrono::milliseconds(patience).count());
  while (!bytes.empty()) {
    std::span<char> part = bytes;
    if (receive_some(channel, wait, part) != Received::some) return false;
    bytes = bytes.subspan(part.size());
  }
  return true;
}

/// The two ends of a channel until they are given away.
class Ends {
 public:
  Ends() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw IoError(fmt::format("no channel to another process: {}", std::strerror(errno)));
    }
    ours = OpenFile(ends[0]);
    theirs = OpenFile(ends[1]);
  }
  OpenFile ours, theirs;
};

/// What a program finds open.
class SpawnFiles {
 public:
  SpawnFiles() { posix_spawn_file_actions_init(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&actions_); }
  void copy(int file, int place) { posix_spawn_file_actions_adddup2(&actions_, file, place); }
  void drop(int place) { posix_spawn_file_actions_addopen(&actions_, place, "/dev/null", O_WRONLY, 0); }

  /// `variables` stand before those of this process.
  [[nodiscard]] pid_t start(const std::string& program, std::vector<std::string> arguments,
                            std::vector<std::string> variables) const {
    std::string name = program;
    std::vector<char*> words{name.data()}, environment;
    for (std::string& argument : arguments) words.push_back(argument.data());
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    words.push_back(nullptr);
    environment.push_back(nullptr);
    pid_t process = 0;
    sigset_t none;  // whatever the calling thread blocks
    sigemptyset(&none);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    const int error =
        ::posix_spawn(&process, program.c_str(), &actions_, &attributes, words.data(), environment.data());
    posix_spawnattr_destroy(&attributes);
    if (error != 0) throw IoError(fmt::format("{} does not start: {}", program, std::strerror(error)));
    return process;
  }

 private:
  posix_spawn_file_actions_t actions_{};
};

[[noreturn]] void work_as_copy(const std::function<void()>& work, int errors) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  try {
    work();
  } catch (const std::exception&) {  // for the caller's own try to meet
  }
  ::_exit(kWorkReturned);
}

}  // namespace

ChildProcess ChildProcess::serving(const std::filesystem::path& program, std::vector<std::string> arguments) {
  Ends ends;
  SpawnFiles files;
  files.copy(ends.theirs.get(), STDIN_FILENO);
  files.copy(ends.theirs.get(), STDOUT_FILENO);
  files.drop(STDERR_FILENO);
  return {files.start(program.string(), std::move(arguments), {}), std::move(ends.ours), 0};
}

ChildProcess ChildProcess::reporting(const std::filesystem::path& program, std::vector<std::string> arguments,
                                     const std::function<std::string(int channel)>& variable, Output output) {
  Ends ends;
  ::fcntl(ends.theirs.get(), F_SETFD, 0);
  SpawnFiles files;
  if (output == Output::to_errors) files.copy(STDERR_FILENO, STDOUT_FILENO);
  return {files.start(program.string(), std::move(arguments), {variable(ends.theirs.get())}), std::move(ends.ours), 0};
}

ChildProcess ChildProcess::copy(const std::function<void()>& work) {
  Ends ends;
  const pid_t process = ::fork();
  if (process < 0) throw IoError(fmt::format("no copy of this process: {}", std::strerror(errno)));
  if (process == 0) work_as_copy(work, ends.theirs.get());
  return {process, std::move(ends.ours), kWorkReturned};
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(other.process_),
      channel_(std::move(other.channel_)),
      success_(other.success_),
      state_(std::exchange(other.state_, State::ended)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() { kill(); }

void ChildProcess::look(bool waits) {
  while (state_ == State::running) {
    const pid_t found = ::waitpid(process_, &status_, waits ? 0 : WNOHANG);
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return;
    state_ = found == process_ ? State::ended : State::unknown;
  }
}

void ChildProcess::kill() {
  if (state_ != State::running) return;
  ::kill(process_, SIGKILL);
  look(true);
}

bool ChildProcess::send(std::string_view bytes) { return send_all(channel_.get(), bytes); }
bool ChildProcess::receive(std::span<char> bytes, std::chrono::seconds patience) {
  return receive_all(channel_.get(), bytes, patience);
}

std::string ChildProcess::follow(Clock::time_point deadline, bool until_hang_up) {
  constexpr int kLook = 50;  // ms between checks whether it has ended: its own children may hold the channel longer
  constexpr std::chrono::milliseconds kPause{5};
  std::array<char, 4096> buffer{};
  std::string text;
  bool is_open = true;
  const auto receive_for = [&](int patience) {
    std::span<char> part = buffer;
    const Received received = receive_some(channel_.get(), patience, part);
    if (received == Received::some) text.append(part.data(), part.size());
    is_open = received != Received::end;
    return received == Received::some;
  };
  while (state_ == State::running && Clock::now() < deadline && (is_open || !until_hang_up)) {
    if (is_open) {
      receive_for(kLook);
    } else {
      std::this_thread::sleep_for(kPause);
    }
    look(false);
  }
  while (is_open && receive_for(0)) {
  }
  return text;
}

std::string ChildProcess::receive_report() { return follow(Clock::time_point::max(), true); }

ChildEnd ChildProcess::finish(std::optional<std::chrono::seconds> patience) {
  ChildEnd end;
  end.output = follow(patience ? Clock::now() + *patience : Clock::time_point::max(), false);
  if (state_ == State::running) {
    kill();
    end.failed = true;
    end.how = fmt::format("no answer in {} s", patience->count());
  } else if (state_ == State::unknown) {
    end.how = "in a way that is not known: its parent ignores SIGCHLD";
  } else if (WIFSIGNALED(status_)) {
    end.failed = true;
    end.how = ::strsignal(WTERMSIG(status_));
  } else if (WEXITSTATUS(status_) != success_) {
    end.failed = true;
    end.how = fmt::format("exit code {}", WEXITSTATUS(status_));
  }
  return end;
}

bool ParentChannel::receive(std::span<char> bytes, std::chrono::seconds patience) const {
  return receive_all(channel_, bytes, patience);
}
bool ParentChannel::send(std::string_view bytes) const { return send_all(channel_, bytes); }
void ParentChannel::hang_up() const {
  ::shutdown(channel_, SHUT_WR);
  std::array<char, 1> byte{};
  std::span<char> nothing = byte;
  while (receive_some(channel_, -1, nothing) == Received::some) {
  }
}

}  // namespace concord
