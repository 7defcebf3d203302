// Child: the process of a rank, and what it prints. Internal to the library.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/collective/running_time.hpp"

namespace concord::collective {

/// The rank whose standard output is that of this process: the first one that is left.
using FirstRank = std::atomic<int>;

/// How a child process starts.
struct ChildStart {
  std::vector<std::string> words;      // the program, found as a shell finds it, and its arguments
  std::vector<std::string> variables;  // of its environment, before those of this process: "NAME=value"
  std::vector<std::string> marks;      // some of them, which together no other rank has
  int rank = 0;                        // of all machines
  sigset_t blocked{};                  // the signals that it blocks
};

/// Rank 0 has the input and output of this process. The standard output of another one is that of this process while it
/// is the first rank, and else dropped; each line of its standard error comes after "[rank 1] ".
class Child {
 public:
  /// Throws IoError if the program does not start. `first` must outlive the child.
  Child(ChildStart start, const FirstRank& first);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills a process that runs. Takes no more of what it has printed than end_output says.
  ~Child();

  /// Looks whether the process has ended, or has been stopped. Returns whether it has ended since the last look.
  bool look();
  [[nodiscard]] bool has_ended() const { return status_.has_value(); }
  [[nodiscard]] bool failed() const { return status_ && *status_ != 0; }
  /// As waitpid gives it; of a process that has ended.
  [[nodiscard]] int status() const { return *status_; }
  /// "ended with exit code 1", "was ended by signal 9 (Killed)"
  [[nodiscard]] std::string how_it_ended() const;
  /// Whether it is stopped, as by SIGSTOP, for longer, while this process runs. For the looks of a launcher.
  [[nodiscard]] bool is_stopped_for(std::chrono::duration<double> time);
  /// To a process that runs. SIGKILL goes to those that it has started too: they hear nothing by themselves.
  void send(int signal) const;
  /// Of a process that has failed: sends SIGTERM to what it has left running, and SIGKILL `patience` after its end.
  /// Returns whether something is left. For the looks of a launcher.
  [[nodiscard]] bool end_remains(std::chrono::duration<double> patience);
  /// Copies what the ended process has printed so far. A process that it has left running may print more: that is
  /// copied too until it is silent for a second, at most for five, and dropped then.
  void end_output();

 private:
  class Copier;

  pid_t process_ = 0;
  std::vector<std::string> marks_;
  std::optional<int> status_;
  std::chrono::steady_clock::time_point ended_;
  std::vector<pid_t> told_;  // the remains that have got SIGTERM
  bool is_cleared_ = false;  // nothing remains
  std::optional<RunningTime> stopped_;
  std::vector<std::unique_ptr<Copier>> output_;
};

}  // namespace concord::collective
