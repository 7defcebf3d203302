// One process for each rank. This process waits for signals: of its children, and those that end it.
#include "concord/collective/launch.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "concord/collective/child.hpp"
#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/store.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/ignored_signals.hpp"
#include "concord/core/json.hpp"

namespace concord::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the other ranks to end: by themselves, and then after SIGTERM.
constexpr std::chrono::seconds kOwnEnd{10}, kEnd{10};
/// Time in which the machine of a lost rank is heard before those of ranks that missed it.
constexpr std::chrono::milliseconds kMissed{500}, kMissedElsewhere{2000};
/// Time in which the others are told that a rank has ended.
constexpr std::chrono::duration<double> kTelling{2};
/// Time in which the other ranks notice one that is stopped, and say so, before it is killed.
constexpr std::chrono::seconds kNotice{1};
constexpr int kInterrupted = 130;

/// The thread that waits for signals. Threads of drivers, which began before, do not block them.
std::atomic<pthread_t> waiting_thread;
static_assert(std::atomic<pthread_t>::is_always_lock_free);

extern "C" void hand_to_waiting_thread(int signal) {
  const int error = errno;
  const pthread_t waiting = waiting_thread;
  if (::pthread_equal(::pthread_self(), waiting) == 0) ::pthread_kill(waiting, signal);
  errno = error;
}

/// Blocks the signals that `launch` waits for, until its end. One that comes then is dropped. Signals that this process
/// was started to ignore, as by nohup, stay ignored: a blocked one would come all the same.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGCHLD);
    for (const int signal : kStopping) {
      if (!was_ignored_at_start(signal)) ::sigaddset(&set_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    waiting_thread = ::pthread_self();
    for (std::size_t i = 0; i < kStopping.size(); ++i) {
      struct sigaction action = {};
      action.sa_handler = was_ignored_at_start(kStopping[i]) ? SIG_IGN : hand_to_waiting_thread;
      action.sa_flags = SA_RESTART;
      ::sigaction(kStopping[i], &action, &actions_[i]);
    }
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() {
    while (next(std::chrono::milliseconds(0))) {
    }
    for (std::size_t i = 0; i < kStopping.size(); ++i) ::sigaction(kStopping[i], &actions_[i], nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// The next signal; nothing after `patience`.
  [[nodiscard]] std::optional<siginfo_t> next(std::chrono::milliseconds patience) const {
    const timespec time{patience.count() / 1000, patience.count() % 1000 * 1'000'000};
    siginfo_t info{};
    if (::sigtimedwait(&set_, &info, &time) < 0) return std::nullopt;
    return info;
  }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  static constexpr std::array kStopping{SIGINT, SIGTERM, SIGHUP};
  sigset_t set_{}, before_{};
  std::array<struct sigaction, kStopping.size()> actions_{};
};

class Launch {
 public:
  Launch(const std::vector<RankProcess>& ranks, int least, const std::optional<Machines>& machines)
      : ranks_(ranks), least_(least), machines_(machines) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() { signal_all(SIGKILL); }

  int run() {
    const auto is_interrupted = [this] {
      const std::optional<siginfo_t> signal = signals_.next(std::chrono::milliseconds(0));
      if (signal && signal->si_signo != SIGCHLD) pass_on(*signal);
      return was_interrupted_;
    };
    if (machines_) {
      meeting_ = Rendezvous::meet(*machines_, static_cast<int>(ranks_.size()), is_interrupted, least_);
      if (!meeting_) return kInterrupted;
      least_ = meeting_->least();
    } else {
      store_.emplace("127.0.0.1", std::uint16_t{0});
    }
    const int all = meeting_ ? meeting_->ranks() : static_cast<int>(ranks_.size());
    CONCORD_CHECK(least_ <= all, ArgumentError, "--min-ranks is {}, but there are {} ranks", least_, all);
    living_.resize(static_cast<std::size_t>(all));
    std::iota(living_.begin(), living_.end(), 0);
    try {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) start_rank(rank);
    } catch (const Error& error) {
      if (meeting_) static_cast<void>(meeting_->tell({.by_interrupt = false, .failure = error.what()}));
      throw;
    }
    while (!std::ranges::all_of(running_, &Child::has_ended) || must_tell() || are_remains_) {
      const std::optional<siginfo_t> signal = signals_.next(std::chrono::milliseconds(200));
      if (signal && signal->si_signo != SIGCHLD) pass_on(*signal);
      look();
      end_left_out();
      tell_others();
      hear_others();
      end_the_others();
      are_remains_ = false;
      for (Child& rank : running_) are_remains_ = rank.end_remains(kEnd) || are_remains_;
    }
    if (meeting_ && failure_.empty() && !was_interrupted_) {
      meeting_->finish(is_interrupted);
      hear_others();
    }
    for (Child& rank : running_) rank.end_output();  // it comes before the message
    if (first_failed_ && was_interrupted_) {
      const int status = running_[*first_failed_].status();
      if (WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted) return kInterrupted;
    }
    if (first_failed_ && failure_.empty()) failure_ = text_of_failure(*first_failed_);  // of an interrupted training
    if (!failure_.empty()) std::fputs(fmt::format("concord: {}\n", failure_).c_str(), stderr);
    const bool has_failed = first_failed_ || !failure_.empty();
    if (was_interrupted_) return has_failed || is_by_others_ ? kInterrupted : 0;
    return has_failed ? 1 : 0;
  }

 private:
  void start_rank(std::size_t rank) {
    const int number = first_rank() + static_cast<int>(rank);
    std::vector<std::string> marks{fmt::format("RANK={}", number),
                                   fmt::format("MASTER_PORT={}", machines_ ? machines_->port : store_->port()),
                                   fmt::format("{}={}", kStoreVariable, ::getpid())};
    std::vector<std::string> variables = ranks_[rank].variables;
    variables.insert(variables.end(), marks.begin(), marks.end());
    variables.push_back(fmt::format("LOCAL_RANK={}", rank));
    variables.push_back(fmt::format("WORLD_SIZE={}", living_.size()));
    variables.push_back(fmt::format("LOCAL_WORLD_SIZE={}", ranks_.size()));
    variables.push_back(fmt::format("MASTER_ADDR={}", machines_ ? machines_->host : "127.0.0.1"));
    if (least_ > 0) variables.push_back(fmt::format("CONCORD_MIN_RANKS={}", least_));
    running_.emplace_back(ChildStart{.words = ranks_[rank].words,
                                     .variables = std::move(variables),
                                     .marks = std::move(marks),
                                     .rank = number,
                                     .blocked = signals_.before()},
                          first_);
  }

  [[nodiscard]] int first_rank() const { return meeting_ ? meeting_->first_rank() : 0; }

  void look() {
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      Child& one = running_[rank];
      if (one.is_stopped_for(deadline_ + kNotice)) one.send(SIGKILL);
      if (!one.look()) continue;
      tell_of_end(first_rank() + static_cast<int>(rank));
      if (!one.failed()) continue;
      if (!was_interrupted_ && failure_.empty() && are_enough_without(rank)) {
        std::fputs(fmt::format("concord: {}; the others go on\n", text_of_failure(rank)).c_str(), stderr);
        continue;
      }
      if (first_failed_) continue;
      first_failed_ = rank;
      if (!failure_.empty()) continue;  // another machine's
      failed_at_ = Clock::now();
      if (!meeting_) failure_ = text_of_failure(rank);
    }
  }

  /// Ranks that wait for this one to join need not wait longer.
  void tell_of_end(int rank) const {
    try {
      Store store(machines_ ? machines_->host : "127.0.0.1", machines_ ? machines_->port : store_->port(), kTelling);
      static_cast<void>(store.set(member_name(rank), kEndedMember));
    } catch (const Error&) {  // no rank of another machine joins either
    }
  }

  /// Whether the training may go on without this rank, which has failed, and those that failed before.
  [[nodiscard]] bool are_enough_without(std::size_t rank) const {
    if (least_ == 0) return false;
    if (meeting_) return meeting_->ranks_without(first_rank() + static_cast<int>(rank)) >= least_;
    return std::ranges::count_if(running_, [](const Child& one) { return !one.failed(); }) >= least_;
  }

  /// Kills ranks that the others have gone on without. A stopped one would never end, and keeps the memory of its
  /// device.
  void end_left_out() {
    const std::optional<std::string> text =
        store_ ? store_->find(survivors_name(losses_ + 1)) : meeting_->survivors(losses_ + 1);
    if (!text) return;
    ++losses_;
    const auto survivors = parse_json(*text, "the ranks that are left").get<std::vector<int>>();
    const auto goes_on = [&](int rank) { return std::ranges::find(survivors, rank) != survivors.end(); };
    first_ = survivors.at(0);
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      if (!goes_on(first_rank() + static_cast<int>(rank))) running_[rank].send(SIGKILL);
    }
    std::erase_if(living_, goes_on);
    if (meeting_) {  // a machine that is lost says nothing itself
      std::fputs(fmt::format("concord: without the ranks that are lost ({}), {} go on ({})\n", fmt::join(living_, ", "),
                             survivors.size(), fmt::join(survivors, ", "))
                     .c_str(),
                 stderr);
    }
    living_ = survivors;
  }

  [[nodiscard]] std::string text_of_failure(std::size_t rank) const {
    const std::string where = meeting_ ? fmt::format(" on {}", host_name()) : std::string();
    return fmt::format("rank {} ({}{}) {}", first_rank() + static_cast<int>(rank), ranks_[rank].name, where,
                       running_[rank].how_it_ended());
  }

  /// Whether the other machines do not know yet that a rank of this one has failed.
  [[nodiscard]] bool must_tell() const { return meeting_ && first_failed_ && failure_.empty() && !was_interrupted_; }

  /// A rank that ended by itself may have missed one of another machine, which that machine then tells about.
  void tell_others() {
    if (!must_tell()) return;
    const bool was_killed = WIFSIGNALED(running_[*first_failed_].status());
    const auto passed = Clock::now() - failed_at_;
    if (!was_killed && passed <= kMissed) return;
    const std::optional<std::string> missed = was_killed ? std::nullopt : meeting_->missed_elsewhere();
    if (missed && passed <= kMissedElsewhere) return;
    hear(meeting_->tell({.by_interrupt = false, .failure = missed ? *missed : text_of_failure(*first_failed_)}));
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
    for (const Child& rank : running_) rank.send(signal);
  }

  const std::vector<RankProcess>& ranks_;
  int least_;  // ranks with which it goes on; 0: all
  const std::optional<Machines>& machines_;
  const std::chrono::duration<double> deadline_{deadline_seconds()};
  const BlockedSignals signals_;         // before any thread starts
  std::optional<StoreServer> store_;     // of one machine
  std::unique_ptr<Rendezvous> meeting_;  // of several
  FirstRank first_ = 0;
  std::vector<Child> running_;
  std::optional<std::size_t> first_failed_;  // of this machine; that the others do not go on without
  std::string failure_;                      // what all machines name
  Clock::time_point failed_at_;
  std::vector<int> living_;  // the ranks of all machines that go on
  int losses_ = 0;           // how often they went on without some
  bool was_interrupted_ = false, is_by_others_ = false, has_terminated_ = false;
  bool are_remains_ = false;  // processes that failed ranks have started
};

}  // namespace

int launch(const std::vector<RankProcess>& ranks, int least, const std::optional<Machines>& machines) {
  return Launch(ranks, least, machines).run();
}

}  // namespace concord::collective
