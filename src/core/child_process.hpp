// ChildProcess: another process that works for this one. It is a program or a copy of this process, and one channel of
// bytes connects the two. Used for programs that build kernels, for programs whose training is compared, and for work
// that may end the process that does it. POSIX.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/core/open_file.hpp"

namespace concord {

/// How a child ended.
struct ChildEnd {
  std::string output;   // what it wrote to the channel and was not received before
  bool failed = false;  // by a signal, an exit code other than 0, or the time limit
  std::string how;      // "exit code 3", "Aborted", "no answer in 60 s"; empty if it is known to have succeeded
};

/// The destructor kills the process, whatever it is doing. Programs start with no signal blocked. Every function that
/// starts a process throws IoError if it does not start.
class ChildProcess {
 public:
  /// Where a program's standard output goes.
  enum class Output : std::uint8_t { shared, to_errors };

  /// Starts a program whose standard input and output are the channel. Its standard error is dropped.
  [[nodiscard]] static ChildProcess serving(const std::filesystem::path& program, std::vector<std::string> arguments);
  /// Starts a program with the input and output of this process. An additional environment variable, "NAME=value",
  /// names the channel; variable(channel) makes it.
  [[nodiscard]] static ChildProcess reporting(const std::filesystem::path& program, std::vector<std::string> arguments,
                                              const std::function<std::string(int channel)>& variable,
                                              Output output = Output::shared);
  /// Runs `work` in a copy of this process, which ends after it. The copy's standard error is the channel; its standard
  /// output is dropped. If `work` throws, it counts as done; if it calls exit(), it counts as failed. Call this only
  /// while the process has no other thread: the copy has none of them, and would wait forever for a lock that one of
  /// them holds.
  [[nodiscard]] static ChildProcess copy(const std::function<void()>& work);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  /// Sends all bytes. Returns false if the process has ended.
  [[nodiscard]] bool send(std::string_view bytes);
  /// Fills `bytes`. Returns false if the process has ended or writes nothing for `patience`.
  [[nodiscard]] bool receive(std::span<char> bytes, std::chrono::seconds patience);
  /// Everything that it writes until it hangs up or ends.
  [[nodiscard]] std::string receive_report();
  /// Waits for its end, and kills it after `patience`.
  [[nodiscard]] ChildEnd finish(std::optional<std::chrono::seconds> patience = {});

 private:
  enum class State : std::uint8_t { running, ended, unknown };  // unknown: it ended, but SIGCHLD is ignored

  ChildProcess(pid_t process, OpenFile channel, int success)
      : process_(process), channel_(std::move(channel)), success_(success) {}
  /// Receives until the process ends or the deadline passes and, with `until_hang_up`, until the process hangs up.
  std::string follow(std::chrono::steady_clock::time_point deadline, bool until_hang_up);
  void look(bool waits);
  void kill();

  pid_t process_;
  OpenFile channel_;
  int success_;  // the exit code of one that did its work
  State state_ = State::running;
  int status_ = 0;  // of one that has ended
};

/// The other end of the channel, in the child.
class ParentChannel {
 public:
  /// Of ChildProcess::serving.
  ParentChannel() = default;
  /// Of ChildProcess::reporting.
  explicit ParentChannel(int channel) : channel_(channel) {}

  /// Fills `bytes`. Returns false if the parent has ended or writes nothing within the time limit.
  [[nodiscard]] bool receive(std::span<char> bytes, std::chrono::seconds patience) const;
  /// Sends all bytes. Returns false if the parent has ended.
  [[nodiscard]] bool send(std::string_view bytes) const;
  /// Ends the output, and waits until the parent has hung up too.
  void hang_up() const;

 private:
  int channel_ = 0;  // standard input, which is standard output as well
};

}  // namespace concord
