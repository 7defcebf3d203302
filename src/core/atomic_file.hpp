// AtomicFile: files that appear whole or not at all. Used by whatever writes files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace concord {

/// What a written file must outlive: `cached` content, which can be made again, is not flushed to the disk.
enum class Durability : std::uint8_t { durable, cached };

/// Who may read a written file: everyone whom the process's umask lets, or its owner alone.
enum class Readers : std::uint8_t { by_umask, owner };

/// A file that appears whole or not at all: written beside `path` under a name of its own, then flushed to the disk
/// and renamed over it by `commit`. Without `commit` the old file stays and nothing is left behind. Any number of
/// threads and processes may replace the same path; the last commit wins.
///
/// A process that is killed leaves its temporary file, "<path>.concord-<process>-<number>.tmp". A later AtomicFile in
/// the folder removes it: whoever writes such a file holds a lock on it (flock), so that one without a lock is
/// nobody's.
class AtomicFile {
 public:
  /// Follows a symbolic link. Throws IoError naming the path and the system's reason, or when there is something else
  /// than a file, for example a device.
  explicit AtomicFile(std::filesystem::path path, Readers readers = Readers::by_umask);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  /// Appends. Throws IoError (a full disk).
  void write(std::span<const std::byte> bytes);
  /// Replaces the file at the path. Throws IoError; the old file is then untouched.
  void commit(Durability durability = Durability::durable);

 private:
  void open_temporary(Readers readers);

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

/// AtomicFile for content that is at hand. Throws IoError.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           Durability durability = Durability::durable, Readers readers = Readers::by_umask);

}  // namespace concord
