// AtomicFile: files that appear completely or not at all. Used wherever files are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace concord {

/// The failures that a written file must survive. `cached` content can be made again, so it is not flushed to the disk.
enum class Durability : std::uint8_t { durable, cached };

/// Who may read a written file: everyone whom the umask of the process allows, or only its owner.
enum class Readers : std::uint8_t { by_umask, owner };

/// A file that appears completely or not at all. It is written next to `path` under a temporary name; `commit` flushes
/// it to the disk and renames it to `path`. Without `commit` the old file stays and the temporary one is removed. Any
/// number of threads and processes may replace the same path; the last commit wins.
///
/// A process that is killed leaves its temporary file, "<path>.concord-<process>-<number>.tmp". A later AtomicFile in
/// the folder removes it, and until then takes another number. A writer holds a lock on its temporary file (flock), so
/// a file without a lock is abandoned.
class AtomicFile {
 public:
  /// Follows a symbolic link. Throws IoError with the path and the system's reason, also if the path is not a regular
  /// file, for example a device.
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

/// Writes complete content with an AtomicFile. Throws IoError.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           Durability durability = Durability::durable, Readers readers = Readers::by_umask);

}  // namespace concord
