// Builds programs in other processes. NVIDIA's driver compiles one program at a time per process, however many threads
// there are, but several processes compile in parallel. Used by ProgramCache.
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

/// A request is two texts, each preceded by its length; the answer is one letter. The first request to a process
/// contains folder and device, the others contain options and source.
namespace build_protocol {
inline constexpr std::chrono::seconds kPatience{120};  // for one program
inline constexpr std::chrono::seconds kIdle{3};        // how long a process waits for the next request
inline constexpr char kBuilt = 'y', kFailed = 'n';
}  // namespace build_protocol

/// The part of a program's key beside source and options: library, platform, device and driver, with versions.
[[nodiscard]] std::string device_text(const boost::compute::device& device);

/// Processes of the command `concord` that build programs into a ProgramCache's folder. They start on demand and exit
/// soon after the last request, because each holds a context on the device. Several threads may use an object.
class BuildProcesses {
 public:
  /// The greatest number of processes. CONCORD_DEBUG=build_processes=N sets it. Otherwise, with drivers that need
  /// processes, it is the processors that the process may use, at most 16 and limited by memory; with others 0. Throws
  /// ArgumentError when N is not a number from 0 to 64.
  [[nodiscard]] static unsigned wanted(const boost::compute::device& device);
  /// The path of the command beside this library; empty where the command is not installed.
  [[nodiscard]] static std::filesystem::path program();

  BuildProcesses(std::filesystem::path program, std::filesystem::path folder, std::string device_text, unsigned most);
  BuildProcesses(const BuildProcesses&) = delete;
  BuildProcesses& operator=(const BuildProcesses&) = delete;
  ~BuildProcesses();

  /// Whether a process built the program; its file is then in the folder. False also where no process is free.
  [[nodiscard]] bool build(const std::string& source, const std::string& options);

 private:
  /// Nothing when no process is free; otherwise an idle process, or null when one may be started.
  [[nodiscard]] std::optional<std::unique_ptr<ChildProcess>> take();
  void give_back(std::unique_ptr<ChildProcess> process);
  [[nodiscard]] std::unique_ptr<ChildProcess> start() const;
  /// Destroys the objects of processes that have exited.
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
