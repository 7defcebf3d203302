// ProgramCache: OpenCL programs of one device, in memory and on disk, built by several threads. Used by Context.
#pragma once

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/program/build.hpp"
#include "concord/opencl/program/build_pool.hpp"

namespace concord::opencl {

class BuildProcesses;

/// A program that may still be under construction. Copies refer to the same program.
class PendingProgram {
 public:
  PendingProgram() = default;
  /// Waits for the program, which lives as long as a copy of this. Throws DeviceError with the build log when the
  /// source does not compile.
  [[nodiscard]] cl_program get() const;
  /// Whether its kernels receive one memory for all of their packed arguments (launch/one_memory.hpp).
  [[nodiscard]] bool has_one_memory() const { return has_one_memory_; }

 private:
  friend class Context;
  friend class ProgramCache;
  explicit PendingProgram(std::shared_future<ProgramHandle> program) : program_(std::move(program)) {}
  std::shared_future<ProgramHandle> program_;
  bool has_one_memory_ = false;
};

/// A file holds one binary and the full text it was built from: source, options, device, driver, platform and library
/// version. The cache uses a file only when that text is equal and the checksum is right; otherwise it builds the
/// program and replaces the file. Files appear atomically, so processes may share a folder. The cache logs once that it
/// cannot write to a folder and continues without storing. Several threads may use a cache.
class ProgramCache {
 public:
  /// The cache stores binaries in `folder`. It keeps them only in memory when `folder` is empty or another user may
  /// write to it. Up to `threads` programs are loaded or built at once; with 0, the call of `get` loads or builds the
  /// program. From the third program built on, other processes help when `processes` is not 0 and there is a folder.
  ProgramCache(boost::compute::context context, const boost::compute::device& device, std::filesystem::path folder,
               unsigned threads, unsigned processes = 0);
  /// Drops the programs that have not begun and waits for the others.
  ~ProgramCache();
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;

  /// Returns at once; the program is loaded or built meanwhile. The next call tries a failed program again.
  [[nodiscard]] PendingProgram get(const std::string& source, const std::string& options);

  /// Number of programs by origin since construction. Waits for programs under construction.
  struct Counts {
    int from_memory = 0, from_disk = 0, built = 0, built_elsewhere = 0;
  };
  [[nodiscard]] Counts counts() const;

  /// The file in which the program of this source and options is stored.
  [[nodiscard]] std::filesystem::path file_of(const std::string& source, const std::string& options) const;

 private:
  [[nodiscard]] std::string key_of(const std::string& source, const std::string& options) const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& key) const;
  [[nodiscard]] bool built_elsewhere(const std::string& source, const std::string& options);
  [[nodiscard]] ProgramHandle make(const std::string& key, const std::string& source, const std::string& options);
  void forget(const std::string& key);
  /// An empty handle where there is no usable file.
  [[nodiscard]] ProgramHandle load(const std::string& key, const std::string& options) const;
  void store(const std::string& key, const ProgramHandle& program);

  BuildTarget target_;
  std::filesystem::path folder_;
  std::string device_text_;
  std::unique_ptr<BuildProcesses> processes_;  // null where none help
  std::atomic<unsigned> to_build_{0};          // programs that are in neither memory nor file
  std::atomic<bool> writable_{true};           // false after the first failure to write
  mutable std::mutex mutex_;                   // of the two below
  std::unordered_map<std::string, PendingProgram> programs_;
  Counts counts_;
  mutable BuildPool pool_;  // last: its threads use the others
};

}  // namespace concord::opencl
