// The implementation for POSIX systems. Another one gets a file of its own beside it.
#include "concord/core/private_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"

namespace concord {
namespace {

struct stat status_of(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) status.st_nlink = 0;
  return status;
}

/// Why another user may write to what has this status; empty where none may.
std::string foreign_mode(const struct stat& status, const std::filesystem::path& path) {
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return fmt::format("{} belongs to the user with the ID {}", path.string(), status.st_uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("other users may write to {} (mode {:03o})", path.string(), status.st_mode & 0777U);
  }
  return {};
}

void warn_once(const std::filesystem::path& about, const std::string& text) {
  static std::mutex mutex;
  static std::set<std::filesystem::path> told;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(about).second) return;
  }
  log(LogLevel::warning, text);
}

struct Descriptor {
  explicit Descriptor(const std::filesystem::path& file) : number(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number < 0) fail_to_open(file);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number); }
  int number;
};

}  // namespace

std::string foreign_access(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return {};
  const struct stat own = status_of(real);
  if (own.st_nlink == 0) return {};
  if (std::string why = foreign_mode(own, real); !why.empty()) return why;
  for (std::filesystem::path above = real.parent_path(); above != above.parent_path(); above = above.parent_path()) {
    const struct stat status = status_of(above);
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
      return fmt::format("everybody may replace files in {} (mode {:03o})", above.string(), status.st_mode & 0777U);
    }
  }
  return {};
}

void create_private_directories(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code error;
  for (std::filesystem::path at = folder; !at.empty() && !std::filesystem::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    const bool made = mkdir(missing.back().c_str(), 0700) == 0 || errno == EEXIST;
    CONCORD_CHECK(made, IoError, "cannot create {}: {}", missing.back().string(), std::strerror(errno));
  }
}

std::filesystem::path if_private(const std::filesystem::path& folder) {
  const std::string why = folder.empty() ? std::string() : foreign_access(folder);
  if (why.empty()) return folder;
  warn_once(folder, fmt::format("the folder {} is not used, because {}: compiled kernels and tables in it could be "
                                "from another user. Everything is compiled again; run `chmod -R go-w {}` if the folder "
                                "is yours, or set CONCORD_CACHE_DIR to a folder of your own.",
                                folder.string(), why, folder.string()));
  return {};
}

std::filesystem::path private_cache_directory(std::string_view part) {
  const std::filesystem::path cache = cache_directory();
  if (cache.empty()) {
    warn_once(cache,
              "compiled kernels are not stored: neither XDG_CACHE_HOME nor HOME is set. Set CONCORD_CACHE_DIR to a "
              "folder of your own to start faster.");
    return cache;
  }
  return if_private(cache).empty() || part.empty() ? if_private(cache) : if_private(cache / part);
}

std::optional<std::string> read_private_file(const std::filesystem::path& file) {
  const Descriptor opened(file);
  struct stat status {};
  CONCORD_CHECK(fstat(opened.number, &status) == 0, IoError, "cannot read {}: {}", file.string(), std::strerror(errno));
  std::string why = foreign_mode(status, file);
  if (why.empty()) why = foreign_access(file);
  if (!why.empty()) {
    warn_once(file, fmt::format("{} is not read, because {}: it could be from another user. Remove it, or run `chmod "
                                "go-w` on it if it is yours.",
                                file.string(), why));
    return std::nullopt;
  }
  std::string content(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = read(opened.number, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    CONCORD_CHECK(got >= 0, IoError, "cannot read {}: {}", file.string(), std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  content.resize(filled);
  return content;
}

}  // namespace concord
