// Programs built by other processes: NVIDIA's driver compiles one program at a time in a process, however many threads
// ask, but several processes at once. Used by ProgramCache.
#pragma once

#include <boost/compute/device.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "concord/core/child_process.hpp"

namespace concord::opencl {

/// A request is a text and another, each with its length before it; the answer is one letter. The first request of a
/// process names folder and device, the others options and source.
namespace build_protocol {
inline constexpr std::chrono::seconds kPatience{120};  // with one program
inline constexpr std::chrono::seconds kIdle{3};        // a process waits for the next request
inline constexpr char kBuilt = 'y', kFailed = 'n';
}  // namespace build_protocol

/// What a device's programs are keyed by beside source and options: library, platform, device and driver, with
/// versions.
[[nodiscard]] std::string device_text(const boost::compute::device& device);

/// Processes of the command `concord` that build programs into a ProgramCache's folder. They start when they are needed
/// and end by themselves soon after the last request, because each holds a context on the device. May be used by
/// several threads.
class BuildProcesses {
 public:
  /// How many may help: CONCORD_DEBUG=build_processes=N, else with drivers that need it as many as the machine has
  /// processors, up to 16 and as far as memory allows, else none. Throws ArgumentError when the variable is no number
  /// from 0 to 64.
  [[nodiscard]] static unsigned wanted(const boost::compute::device& device);
  /// The command beside this library; empty where it was not installed with it.
  [[nodiscard]] static std::filesystem::path program();

  BuildProcesses(std::filesystem::path program, std::filesystem::path folder, std::string device_text, unsigned most);
  BuildProcesses(const BuildProcesses&) = delete;
  BuildProcesses& operator=(const BuildProcesses&) = delete;
  ~BuildProcesses();

  /// Whether one of them built the program; its file is then in the folder. False also where none is free.
  [[nodiscard]] bool build(const std::string& source, const std::string& options);

 private:
  /// Null when none is free; else one that waits, or none yet.
  [[nodiscard]] std::optional<std::unique_ptr<ChildProcess>> take();
  void give_back(std::unique_ptr<ChildProcess> process);
  [[nodiscard]] std::unique_ptr<ChildProcess> start() const;
  /// Lets go of processes that have ended by themselves.
  void watch();

  std::filesystem::path program_, folder_;
  std::string device_text_;
  std::mutex mutex_;  // of all below
  std::condition_variable used_or_stopped_;
  std::vector<std::unique_ptr<ChildProcess>> idle_;
  unsigned free_;
  std::uint64_t uses_ = 0;
  bool is_watching_ = false, is_stopped_ = false;
  std::thread watcher_;
};

}  // namespace concord::opencl
