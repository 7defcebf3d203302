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
#include <memory>
#include <optional>
#include <thread>

#include "concord/collective/interfaces.hpp"
#include "concord/collective/store.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"

namespace concord::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the other ranks to end: by themselves, and then after SIGTERM.
constexpr std::chrono::seconds kOwnEnd{10}, kEnd{10};
/// Time in which the machine of a lost rank is heard before those of ranks that missed it.
constexpr std::chrono::milliseconds kMissed{500};
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
  Launch(const std::vector<RankProcess>& ranks, const std::optional<Machines>& machines)
      : ranks_(ranks), machines_(machines), running_(ranks.size()) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    signal_all(SIGKILL);
    for (Running& rank : running_) {
      if (rank.process > 0 && !rank.has_ended) ::waitpid(rank.process, nullptr, 0);
    }
  }

  int run() {
    const auto is_interrupted = [this] {
      const std::optional<siginfo_t> signal = signals_.next(std::chrono::milliseconds(0));
      if (signal && signal->si_signo != SIGCHLD) pass_on(*signal);
      return was_interrupted_;
    };
    if (machines_) {
      meeting_ = Rendezvous::meet(*machines_, static_cast<int>(ranks_.size()), is_interrupted);
      if (!meeting_) return kInterrupted;
    } else {
      store_.emplace(StoreServer::Reach::this_machine, std::uint16_t{0});
    }
    try {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) start_rank(rank);
    } catch (const Error& error) {
      if (meeting_) static_cast<void>(meeting_->tell({.by_interrupt = false, .failure = error.what()}));
      throw;
    }
    while (!all_have_ended() || must_tell()) {
      const std::optional<siginfo_t> signal = signals_.next(std::chrono::milliseconds(200));
      if (signal && signal->si_signo != SIGCHLD) pass_on(*signal);
      look();
      tell_others();
      hear_others();
      end_the_others();
    }
    if (meeting_ && failure_.empty() && !was_interrupted_) {
      meeting_->finish(is_interrupted);
      hear_others();
    }
    lines_.clear();  // what the ranks have written comes before the message
    if (first_failed_ && was_interrupted_) {
      const int status = running_[*first_failed_].status;
      if (WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted) return kInterrupted;
    }
    if (first_failed_ && failure_.empty()) failure_ = text_of_failure();  // of an interrupted training
    if (!failure_.empty()) std::fputs(fmt::format("concord: {}\n", failure_).c_str(), stderr);
    const bool has_failed = first_failed_ || !failure_.empty();
    if (was_interrupted_) return has_failed || is_by_others_ ? kInterrupted : 0;
    return has_failed ? 1 : 0;
  }

 private:
  void start_rank(std::size_t rank) {
    const std::size_t number = rank + static_cast<std::size_t>(first_rank());
    std::vector<std::string> variables = ranks_[rank].variables;
    variables.push_back(fmt::format("RANK={}", number));
    variables.push_back(fmt::format("LOCAL_RANK={}", rank));
    variables.push_back(fmt::format("WORLD_SIZE={}", meeting_ ? meeting_->ranks() : static_cast<int>(ranks_.size())));
    variables.push_back(fmt::format("LOCAL_WORLD_SIZE={}", ranks_.size()));
    variables.push_back(fmt::format("MASTER_ADDR={}", machines_ ? machines_->host : "127.0.0.1"));
    variables.push_back(fmt::format("MASTER_PORT={}", machines_ ? machines_->port : store_->port()));
    variables.push_back(fmt::format("{}={}", kStoreVariable, ::getpid()));
    std::optional<int> errors;
    if (number > 0) {
      std::array<int, 2> ends{};
      CONCORD_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, IoError, "no pipe to rank {}: {}", number,
                    std::strerror(errno));
      errors = ends[1];
      lines_.emplace_back(ends[0], fmt::format("[rank {}] ", number));
    }
    running_[rank].process = start(ranks_[rank], std::move(variables), errors, signals_.before());
    if (errors) ::close(*errors);
  }

  [[nodiscard]] int first_rank() const { return meeting_ ? meeting_->first_rank() : 0; }

  void look() {
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      Running& one = running_[rank];
      if (one.has_ended || ::waitpid(one.process, &one.status, WNOHANG) != one.process) continue;
      one.has_ended = true;
      if (!one.failed() || first_failed_) continue;
      first_failed_ = rank;
      if (!failure_.empty()) continue;  // another machine's
      failed_at_ = Clock::now();
      if (!meeting_) failure_ = text_of_failure();
    }
  }

  [[nodiscard]] std::string text_of_failure() const {
    const std::string where = meeting_ ? fmt::format(" on {}", host_name()) : std::string();
    return fmt::format("rank {} ({}{}) {}", first_rank() + static_cast<int>(*first_failed_),
                       ranks_[*first_failed_].name, where, how_it_ended(running_[*first_failed_].status));
  }

  /// Whether the other machines do not know yet that a rank of this one has failed.
  [[nodiscard]] bool must_tell() const { return meeting_ && first_failed_ && failure_.empty() && !was_interrupted_; }

  /// A rank that ended by itself may have missed one of another machine, which that machine then tells about.
  void tell_others() {
    if (!must_tell()) return;
    const bool was_killed = WIFSIGNALED(running_[*first_failed_].status);
    if (was_killed || Clock::now() - failed_at_ > kMissed)
      hear(meeting_->tell({.by_interrupt = false, .failure = text_of_failure()}));
  }

  void hear_others() {
    if (!meeting_ || !failure_.empty() || was_interrupted_) return;
    if (const std::optional<Rendezvous::End> end = meeting_->told()) hear(*end);
  }

  void hear(const Rendezvous::End& end) {
    if (end.by_interrupt) {
      was_interrupted_ = is_by_others_ = true;
      signal_all(SIGINT);
      return;
    }
    failure_ = end.failure;
    if (!first_failed_) failed_at_ = Clock::now();
  }

  void end_the_others() {
    if (!first_failed_ && failure_.empty()) return;
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
    if (meeting_) static_cast<void>(meeting_->tell({.by_interrupt = true, .failure = {}}));
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
  const std::optional<Machines>& machines_;
  const BlockedSignals signals_;         // before any thread starts
  std::optional<StoreServer> store_;     // of one machine
  std::unique_ptr<Rendezvous> meeting_;  // of several
  std::vector<Running> running_;
  std::vector<PrefixedLines> lines_;
  std::optional<std::size_t> first_failed_;  // of this machine
  std::string failure_;                      // what all machines name
  Clock::time_point failed_at_;
  bool was_interrupted_ = false, is_by_others_ = false, has_terminated_ = false;
};

}  // namespace

int launch(const std::vector<RankProcess>& ranks, const std::optional<Machines>& machines) {
  return Launch(ranks, machines).run();
}

}  // namespace concord::collective
