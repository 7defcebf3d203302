// The command `concord` run as a user runs it: arguments and environment in, exit code and what it printed out. POSIX.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "files.hpp"

namespace concord::test {

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;  // beside that of the test

/// How a run of the command ended.
struct Ended {
  int code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

/// A program that is running. One that is still running at the end of its object is killed.
class Process {
 public:
  Process(const std::string& program, const Arguments& arguments, const Environment& environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Reads standard error until it holds `text`; false when it ended without.
  [[nodiscard]] bool wait_for_error_text(std::string_view text);
  void send(int signal) const;
  [[nodiscard]] pid_t id() const { return pid_; }
  [[nodiscard]] Ended finish();

 private:
  bool read_error_text();  // some more of it; false at its end

  TemporaryFolder folder_;  // standard output goes to a file
  pid_t pid_ = -1;
  int err_ = -1;
  std::string err_text_;
};

/// Waits until `is_true`, at most a minute. Returns whether it is.
[[nodiscard]] bool wait_until(const std::function<bool()>& is_true);

/// Whether there is a program `concord`: that of the build, or $CONCORD_PROGRAM. Reports the test as skipped otherwise.
[[nodiscard]] bool command_is_there();
/// Its path.
[[nodiscard]] std::string command_path();

/// Runs `concord` to its end.
[[nodiscard]] Ended run_command(const Arguments& arguments, const Environment& environment = {});
/// The same after a line of shell, such as a limit or a redirection: `exec "$@"` is what runs it.
[[nodiscard]] Ended run_command_in_shell(const std::string& line, const Arguments& arguments);

[[nodiscard]] Arguments with(Arguments first, const Arguments& more);
/// Fails with this exit code and these words, and prints nothing that looks like a result.
void check_refusal(const Arguments& arguments, int code, const std::vector<std::string>& words);

/// What --device takes in these tests: the CPU where tests run on it, since it has no kernels to build.
[[nodiscard]] std::string cheap_device();

/// A folder with data in MNIST's files: samples of 28x28 that a network can learn. Gives what --data takes.
[[nodiscard]] std::string write_digits(const std::filesystem::path& folder, int train, int test);

/// `concord train mlp` on such data in batches of 10, and more arguments.
[[nodiscard]] Arguments train(const std::string& data, const Arguments& more);

}  // namespace concord::test
