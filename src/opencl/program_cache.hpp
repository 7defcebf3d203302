// ProgramCache: built OpenCL programs of one device, in memory and on disk. Used by Context.
#pragma once

#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <boost/compute/program.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

namespace concord::opencl {

/// A file holds one binary and the whole text it was built from: source, options, device, driver, platform and library
/// version. It is used only when that text is equal and its checksum holds; anything else is built anew and replaced.
/// Files appear atomically, so processes may share a folder. A folder that cannot be written is reported once through
/// the log, then done without.
class ProgramCache {
 public:
  /// Binaries go to `folder`; an empty one keeps them in memory only.
  ProgramCache(boost::compute::context context, boost::compute::device device, std::filesystem::path folder);

  /// Throws DeviceError with the build log when the source does not compile.
  [[nodiscard]] boost::compute::program get(const std::string& source, const std::string& options);

  /// How many programs came from where, since construction.
  struct Counts {
    int from_memory = 0, from_disk = 0, built = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  /// The file that the program of this source and options is kept in.
  [[nodiscard]] std::filesystem::path file_of(const std::string& source, const std::string& options) const;

 private:
  [[nodiscard]] std::string key_of(const std::string& source, const std::string& options) const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& key) const;
  [[nodiscard]] std::optional<boost::compute::program> load(const std::string& key, const std::string& options) const;
  [[nodiscard]] boost::compute::program build(const std::string& source, const std::string& options) const;
  void store(const std::string& key, const boost::compute::program& program);

  boost::compute::context context_;
  boost::compute::device device_;
  std::filesystem::path folder_;
  bool writable_ = true;  // false after the first failure to write
  std::string device_text_;
  std::unordered_map<std::string, boost::compute::program> programs_;
  Counts counts_;
};

}  // namespace concord::opencl
