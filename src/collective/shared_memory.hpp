// The transport `host`: memory that the ranks of one machine share. Internal to the library.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "concord/collective/group.hpp"

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

  int file_ = -1;
  std::span<std::byte> bytes_;
};

/// The size of the block for a group of so many ranks.
[[nodiscard]] std::size_t shared_bytes(int size);
/// A rank of the group whose block this is; `memory` must be of shared_bytes(size).
[[nodiscard]] GroupPtr make_shared_group(std::shared_ptr<SharedMemory> memory, int rank, int size,
                                         std::chrono::duration<double> deadline);
/// The ranks of a group within this process, one for each of `size` threads.
[[nodiscard]] std::vector<GroupPtr> make_groups_of_threads(int size, std::chrono::duration<double> deadline);

}  // namespace concord::collective
