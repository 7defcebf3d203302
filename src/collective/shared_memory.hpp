// SharedMemory: memory of several processes. Internal to the library.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "concord/core/open_file.hpp"

namespace concord::collective {

/// A block of memory that several processes map. It has no name in the file system, so nothing is left of it when its
/// processes have ended, however they end.
class SharedMemory {
 public:
  /// Makes a block of zeros. Throws OutOfMemory.
  explicit SharedMemory(std::size_t bytes);
  /// Maps the block of another process by `path()`. Throws IoError.
  SharedMemory(const std::filesystem::path& path, std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// Where another process of the same user finds the block while this process runs.
  [[nodiscard]] std::filesystem::path path() const;
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  void map(std::size_t bytes);

  OpenFile file_;
  std::span<std::byte> bytes_;
};

}  // namespace concord::collective
