// ChildProcess by posix_spawn, with one end of a pair of sockets as the child's standard input and output.
#include "concord/core/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace concord {
namespace {

/// Without the signal that writing to nobody raises.
bool send_all(int channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int channel, std::span<char> bytes, std::chrono::seconds patience) {
  while (!bytes.empty()) {
    pollfd ready{channel, POLLIN, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return false;
    const ssize_t got = ::recv(channel, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

/// What the child finds open: the channel as input and output, nothing as its standard error.
class SpawnFiles {
 public:
  explicit SpawnFiles(int channel) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, channel, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, channel, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::unique_ptr<ChildProcess> ChildProcess::start(const std::filesystem::path& program,
                                                  const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return nullptr;
  const auto [ours, theirs] = ends;
  std::string name = program.string();
  std::vector<std::string> words = arguments;
  std::vector<char*> pointers{name.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t process = 0;
  const SpawnFiles files(theirs);
  const int error = posix_spawn(&process, name.c_str(), files.get(), nullptr, pointers.data(), environ);
  ::close(theirs);
  if (error != 0) {
    ::close(ours);
    return nullptr;
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(process, ours));
}

ChildProcess::~ChildProcess() {
  ::close(channel_);
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::send(std::string_view bytes) { return send_all(channel_, bytes); }
bool ChildProcess::receive(std::span<char> bytes, std::chrono::seconds patience) {
  return receive_all(channel_, bytes, patience);
}

bool ParentChannel::receive(std::span<char> bytes, std::chrono::seconds patience) {
  return receive_all(STDIN_FILENO, bytes, patience);
}
bool ParentChannel::send(std::string_view bytes) { return send_all(STDOUT_FILENO, bytes); }

}  // namespace concord
