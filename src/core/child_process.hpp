// Another program that works for this one, talked to through one channel: its standard input and output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

/// Ended, whatever it is doing, when this is destroyed. What it writes to standard error is dropped.
class ChildProcess {
 public:
  /// Null where it cannot be started.
  [[nodiscard]] static std::unique_ptr<ChildProcess> start(const std::filesystem::path& program,
                                                           const std::vector<std::string>& arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  /// All of it; false when the process is gone.
  [[nodiscard]] bool send(std::string_view bytes);
  /// Fills `bytes`; false when the process is gone or says nothing for so long.
  [[nodiscard]] bool receive(std::span<char> bytes, std::chrono::seconds patience);

 private:
  ChildProcess(pid_t process, int channel) : process_(process), channel_(channel) {}
  pid_t process_;
  int channel_;
};

/// Of a process that another one started so: the other end of the channel.
class ParentChannel {
 public:
  /// Fills `bytes`; false when the parent is gone or says nothing for so long.
  [[nodiscard]] static bool receive(std::span<char> bytes, std::chrono::seconds patience);
  /// False when the parent is gone.
  [[nodiscard]] static bool send(std::string_view bytes);
};

}  // namespace concord
