// The implementation for POSIX systems. Another one gets a file of its own beside it.
#include "concord/core/private_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace

std::string foreign_access(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return {};
  const struct stat own = status_of(real);
  if (own.st_nlink == 0) return {};
  if (own.st_uid != geteuid() && own.st_uid != 0) {
    return fmt::format("{} belongs to the user with the number {}", real.string(), own.st_uid);
  }
  if ((own.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("other users may write to {} (mode {:03o})", real.string(), own.st_mode & 0777U);
  }
  for (std::filesystem::path above = real.parent_path(); above != above.parent_path(); above = above.parent_path()) {
    const struct stat status = status_of(above);
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
      return fmt::format("everybody may replace what is in {} (mode {:03o})", above.string(), status.st_mode & 0777U);
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

std::filesystem::path private_cache_directory() {
  const std::filesystem::path cache = cache_directory();
  if (cache.empty()) return cache;
  const std::string why = foreign_access(cache);
  if (why.empty()) return cache;
  static std::mutex mutex;
  static std::set<std::filesystem::path> told;
  const std::lock_guard lock(mutex);
  if (told.insert(cache).second) {
    log(LogLevel::warning,
        fmt::format("the cache folder {} is not used, since {}: compiled kernels and tables in it could be another "
                    "user's. `chmod -R go-w {}` where that is yours, or set CONCORD_CACHE_DIR to a folder of your own.",
                    cache.string(), why, cache.string()));
  }
  return {};
}

}  // namespace concord
