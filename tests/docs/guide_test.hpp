// What the programs of the guides share: Catch2, the library as a user includes it, and a folder for what they write.
#pragma once

#include <filesystem>

#include "concord_test.hpp"
#include "files.hpp"

namespace concord::test {

/// The guides say "auto"; their tests take the CPU, which every machine has.
[[nodiscard]] inline DevicePtr guide_device() { return Device::open("cpu"); }

/// The working folder during its lifetime is a new, empty one.
class InEmptyFolder {
 public:
  InEmptyFolder() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_.path()); }
  InEmptyFolder(const InEmptyFolder&) = delete;
  InEmptyFolder& operator=(const InEmptyFolder&) = delete;
  ~InEmptyFolder() { std::filesystem::current_path(before_); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path before_;
};

}  // namespace concord::test
