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

namespace concord::collective {

/// The rank whose standard output is that of this process: the first one that is left.
using FirstRank = std::atomic<int>;

/// How a child process starts.
struct ChildStart {
  std::vector<std::string> words;      // the program, found as a shell finds it, and its arguments
  std::vector<std::string> variables;  // of its environment, before those of this process: "NAME=value"
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
  /// Kills a process that runs.
  ~Child();

  /// Looks whether the process has ended, or has been stopped. Returns whether it has ended since the last look.
  bool look();
  [[nodiscard]] bool has_ended() const { return status_.has_value(); }
  [[nodiscard]] bool failed() const { return status_ && *status_ != 0; }
  /// As waitpid gives it; of a process that has ended.
  [[nodiscard]] int status() const { return *status_; }
  /// "ended with exit code 1", "was ended by signal 9 (Killed)"
  [[nodiscard]] std::string how_it_ended() const;
  /// Whether it is stopped, as by SIGSTOP, for longer.
  [[nodiscard]] bool is_stopped_for(std::chrono::duration<double> time) const;
  /// To a process that runs.
  void send(int signal) const;
  /// Waits until all that the ended process has printed is copied.
  void finish_output();

 private:
  class Copier;

  pid_t process_ = 0;
  std::optional<int> status_;
  std::optional<std::chrono::steady_clock::time_point> stopped_;
  std::vector<std::unique_ptr<Copier>> output_;
};

}  // namespace concord::collective
