// One process for each rank. This process waits for signals: of its children, and those that end it.
#include "concord/collective/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "concord/collective/store.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"

namespace concord::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the other ranks to end: by themselves, and then after SIGTERM.
constexpr std::chrono::seconds kOwnEnd{10}, kEnd{10};
constexpr int kInterrupted = 130;

/// Blocks the signals that `launch` waits for, until its end.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// The next signal; nothing after `patience`.
  [[nodiscard]] std::optional<siginfo_t> next(std::chrono::milliseconds patience) const {
    const timespec time{patience.count() / 1000, patience.count() % 1000 * 1'000'000};
    siginfo_t info{};
    if (::sigtimedwait(&set_, &info, &time) < 0) return std::nullopt;
    return info;
  }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t set_{}, before_{};
};

/// Copies lines from a rank's standard error to that of this process.
class PrefixedLines {
 public:
  PrefixedLines(int file, std::string prefix)
      : thread_([file, prefix = std::move(prefix)] {
          std::string text;
          std::array<char, 4096> bytes{};
          for (;;) {
            const ssize_t got = ::read(file, bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            text.append(bytes.data(), static_cast<std::size_t>(got));
            for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
              std::fputs((prefix + text.substr(0, end + 1)).c_str(), stderr);
              text.erase(0, end + 1);
            }
          }
          if (!text.empty()) std::fputs((prefix + text + '\n').c_str(), stderr);
          ::close(file);
        }) {}
  PrefixedLines(PrefixedLines&&) = default;
  ~PrefixedLines() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

struct Running {
  pid_t process = 0;
  bool has_ended = false;
  int status = 0;
  [[nodiscard]] bool failed() const { return has_ended && status != 0; }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Starts a rank with these variables before those of this process. If `errors` is given, its standard error goes there
/// and its standard output nowhere.
pid_t start(RankProcess rank, std::vector<std::string> variables, std::optional<int> errors, const sigset_t& signals) {
  posix_spawn_file_actions_t files{};
  posix_spawn_file_actions_init(&files);
  if (errors) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, *errors, STDERR_FILENO);
  }
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, rank.words[0].c_str(), &files, &attributes, pointers(rank.words).data(),
                                   pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  CONCORD_CHECK(error == 0, IoError, "{} does not start: {}", rank.words[0], std::strerror(error));
  return process;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

class Launch {
 public:
  explicit Launch(const std::vector<RankProcess>& ranks) : ranks_(ranks), running_(ranks.size()) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    signal_all(SIGKILL);
    for (Running& rank : running_) {
      if (rank.process > 0 && !rank.has_ended) ::waitpid(rank.process, nullptr, 0);
    }
  }

  int run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) start_rank(rank);
    while (!all_have_ended()) {
      const std::optional<siginfo_t> signal = signals_.next(std::chrono::milliseconds(200));
      if (signal && signal->si_signo != SIGCHLD) pass_on(*signal);
      look();
      end_the_others();
    }
    lines_.clear();  // what the ranks have written comes before the message
    if (!first_failed_) return 0;
    const int status = running_[*first_failed_].status;
    if (was_interrupted_ && WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted) return kInterrupted;
    std::fputs(
        fmt::format("concord: rank {} ({}) {}\n", *first_failed_, ranks_[*first_failed_].name, how_it_ended(status))
            .c_str(),
        stderr);
    return was_interrupted_ ? kInterrupted : 1;
  }

 private:
  void start_rank(std::size_t rank) {
    std::vector<std::string> variables = ranks_[rank].variables;
    for (const char* name : {"RANK", "LOCAL_RANK"}) variables.push_back(fmt::format("{}={}", name, rank));
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) {
      variables.push_back(fmt::format("{}={}", name, ranks_.size()));
    }
    variables.emplace_back("MASTER_ADDR=127.0.0.1");
    variables.push_back(fmt::format("MASTER_PORT={}", store_.port()));
    variables.push_back(fmt::format("{}={}", kStoreVariable, ::getpid()));
    std::optional<int> errors;
    if (rank > 0) {
      std::array<int, 2> ends{};
      CONCORD_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, IoError, "no pipe to rank {}: {}", rank,
                    std::strerror(errno));
      errors = ends[1];
      lines_.emplace_back(ends[0], fmt::format("[rank {}] ", rank));
    }
    running_[rank].process = start(ranks_[rank], std::move(variables), errors, signals_.before());
    if (errors) ::close(*errors);
  }

  void look() {
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      Running& one = running_[rank];
      if (one.has_ended || ::waitpid(one.process, &one.status, WNOHANG) != one.process) continue;
      one.has_ended = true;
      if (one.failed() && !first_failed_) {
        first_failed_ = rank;
        failed_at_ = Clock::now();
      }
    }
  }

  void end_the_others() {
    if (!first_failed_) return;
    const auto passed = Clock::now() - failed_at_;
    if (passed > kOwnEnd + kEnd) {
      signal_all(SIGKILL);
    } else if (passed > kOwnEnd && !has_terminated_) {
      has_terminated_ = true;
      signal_all(SIGTERM);
    }
  }

  /// A terminal signals all processes by itself.
  void pass_on(const siginfo_t& signal) {
    was_interrupted_ = true;
    if (signal.si_code != SI_KERNEL) signal_all(signal.si_signo == SIGHUP ? SIGTERM : signal.si_signo);
  }

  void signal_all(int signal) const {
    for (const Running& rank : running_) {
      if (rank.process > 0 && !rank.has_ended) ::kill(rank.process, signal);
    }
  }

  [[nodiscard]] bool all_have_ended() const {
    for (const Running& rank : running_) {
      if (!rank.has_ended) return false;
    }
    return true;
  }

  const std::vector<RankProcess>& ranks_;
  const BlockedSignals signals_;  // before any thread starts
  const StoreServer store_{StoreServer::Reach::this_machine, 0};
  std::vector<Running> running_;
  std::vector<PrefixedLines> lines_;
  std::optional<std::size_t> first_failed_;
  Clock::time_point failed_at_;
  bool was_interrupted_ = false, has_terminated_ = false;
};

}  // namespace

int launch(const std::vector<RankProcess>& ranks) { return Launch(ranks).run(); }

}  // namespace concord::collective
