// A file of $TMPDIR that has the input of a fuzzing run, for readers that open files by name.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace concord::test {

class FileOfInput {
 public:
  FileOfInput() : path_((std::filesystem::temp_directory_path() / "concord-fuzz-XXXXXX").string()) {
    number_ = mkstemp(path_.data());
    if (number_ < 0) std::abort();
  }
  FileOfInput(const FileOfInput&) = delete;
  FileOfInput& operator=(const FileOfInput&) = delete;
  ~FileOfInput() { unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const { return path_; }
  void write(std::span<const std::uint8_t> content) const {
    if (ftruncate(number_, 0) != 0) std::abort();
    if (pwrite(number_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) std::abort();
  }

 private:
  std::string path_;
  int number_ = -1;
};

}  // namespace concord::test
