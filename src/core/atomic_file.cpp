// The implementation for POSIX systems. Another one gets a file of its own beside it.
#include "concord/core/atomic_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "concord/core/check.hpp"

namespace concord {
namespace {

constexpr std::string_view kMark = ".concord-", kSuffix = ".tmp";

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Unique among the threads of this process, and among the processes that run on this machine outside of containers.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path name = path;
  name += fmt::format("{}{}-{}{}", kMark, getpid(), counter++, kSuffix);
  return name;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "weights.safetensors.concord-4711-0.tmp"
bool is_temporary(std::string_view name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || !name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  name.remove_prefix(mark + kMark.size());
  const std::size_t dash = name.find('-');
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}

// If the lock is free, no process writes to the file. On a file system without locks nothing is removed. NFS locks only
// files that are open for writing; those of other users may be readable alone.
void remove_if_left_behind(const std::filesystem::path& file) {
  int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(file.c_str());
  close(descriptor);
}

void remove_left_behind(const std::filesystem::path& folder) {
  // Does not use <filesystem>, whose iterators end the process when host memory runs out.
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (entries == nullptr) return;
  while (const dirent* const entry = readdir(entries.get())) {
    if (is_temporary(entry->d_name)) remove_if_left_behind(folder / entry->d_name);
  }
}

// Folders of compiled kernels hold thousands of files, which are written one after the other, so each folder is
// searched once.
bool is_first_time(const std::filesystem::path& folder) {
  static std::mutex mutex;
  static std::set<std::filesystem::path> known;
  const std::lock_guard lock(mutex);
  return known.insert(folder).second;
}

// A rename is on the disk only when its folder is. Some file systems cannot sync folders; the rename holds all the
// same.
void sync_folder(const std::filesystem::path& file) {
  const int descriptor = open(folder_of(file).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// Where a file of this name really lies; a device or a folder must not be replaced by a file.
std::filesystem::path replaceable(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  CONCORD_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), IoError,
                "cannot replace {}: it is not a regular file", path.string());
  return std::filesystem::is_symlink(path, ignored) ? std::filesystem::weakly_canonical(path) : path;
}

}  // namespace

// Removes abandoned files first, because they may be what fills the disk.
AtomicFile::AtomicFile(std::filesystem::path path, Readers readers) : path_(replaceable(path)) {
  const std::filesystem::path folder = folder_of(path_);
  if (is_first_time(folder) || readers == Readers::by_umask) remove_left_behind(folder);
  open_temporary(readers);
}

// Before this file is locked, another process may take it for an abandoned one and remove it. Then another is made.
// Another is also made where the name is taken: in containers each process may have the same number, and its file may
// have been left behind where it cannot be removed.
void AtomicFile::open_temporary(Readers readers) {
  const mode_t mode = readers == Readers::owner ? 0600 : 0666;
  while (true) {
    temporary_ = temporary_beside(path_);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) {
      const std::string why = std::strerror(errno);
      temporary_.clear();
      throw IoError(fmt::format("cannot write {}: no file can be created in its folder: {}", path_.string(), why));
    }
    const bool is_locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
    struct stat status {};
    if (is_locked && fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    close(std::exchange(descriptor_, -1));
    unlink(temporary_.c_str());
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    CONCORD_CHECK(written > 0, IoError, "cannot write {}: {}", path_.string(), std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// The file stays locked until it has its final name. A network file system reports failed writes only when a descriptor
// is closed, so a second descriptor is closed before the rename.
void AtomicFile::commit(Durability durability) {
  const bool durable = durability == Durability::durable;
  CONCORD_CHECK(!durable || fsync(descriptor_) == 0, IoError, "cannot write {}: {}", path_.string(),
                std::strerror(errno));
  const int second = dup(descriptor_);
  CONCORD_CHECK(second >= 0 && close(second) == 0, IoError, "cannot write {}: {}", path_.string(),
                std::strerror(errno));
  CONCORD_CHECK(rename(temporary_.c_str(), path_.c_str()) == 0, IoError, "cannot replace {}: {}", path_.string(),
                std::strerror(errno));
  temporary_.clear();
  close(std::exchange(descriptor_, -1));
  if (durable) sync_folder(path_);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes, Durability durability,
                           Readers readers) {
  AtomicFile file(path, readers);
  file.write(bytes);
  file.commit(durability);
}

}  // namespace concord
