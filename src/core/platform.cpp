// The Linux implementation. Another system gets a file of its own beside it.
#include "concord/core/platform.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/control_groups.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord {
namespace {

/// The file that `address` was loaded from, by the kernel's table: "begin-end access offset device inode path". The
/// path is absolute and without symbolic links, however the program was started and wherever it has gone since. Empty
/// if there is no table.
std::filesystem::path mapped_file(std::uintptr_t address) {
  std::ifstream table("/proc/self/maps");
  for (std::string line; std::getline(table, line);) {
    const std::size_t middle = line.find('-'), end = line.find(' '), path = line.find('/');
    if (middle == std::string::npos || end == std::string::npos || path == std::string::npos) continue;
    const auto first = number_in_text<std::uintptr_t>(std::string_view(line).substr(0, middle), 16);
    const auto last = number_in_text<std::uintptr_t>(std::string_view(line).substr(middle + 1, end - middle - 1), 16);
    if (first && last && *first <= address && address < *last) return line.substr(path);
  }
  return {};
}

/// The folder of the file that this library was loaded from; empty if it is not known.
std::filesystem::path library_folder() {
  const void* const here = reinterpret_cast<const void*>(&library_prefixes);
  const std::filesystem::path mapped = mapped_file(reinterpret_cast<std::uintptr_t>(here));
  if (!mapped.empty()) return mapped.parent_path();  // the file itself may have been replaced since
  Dl_info found{};
  if (dladdr(here, &found) == 0) return {};
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(found.dli_fname, error);
  return error ? std::filesystem::path() : library.parent_path();
}

}  // namespace

void fail_to_open(const std::filesystem::path& path) {
  const int reason = errno;
  const std::string text = fmt::format("cannot open {}: {}", printable(path.string()), std::strerror(reason));
  if (reason == ENOMEM) throw OutOfMemory(text);
  throw IoError(text);
}

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) fail_to_open(path);
  try {
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure& failure) {
    throw IoError(fmt::format("cannot read {}: {}", path.string(), failure.code().message()));
  }
}

std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (!entries && errno == ENOMEM) fail_to_open(folder);
  if (!entries) return {};
  const auto next = [&] {
    errno = 0;
    return readdir(entries.get());
  };
  std::vector<std::filesystem::path> paths;
  while (const dirent* const entry = next()) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") paths.push_back(folder / name);
  }
  if (errno == ENOMEM) fail_to_open(folder);
  std::ranges::sort(paths);
  return paths;
}

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = path.empty() ? path : std::filesystem::absolute(path, error);
  return error ? path : absolute;
}

std::filesystem::path cache_directory() {
  if (const auto own = environment("CONCORD_CACHE_DIR")) return absolute_path(*own);
  if (const auto xdg = environment("XDG_CACHE_HOME")) return absolute_path(*xdg) / "concord";
  if (const auto home = environment("HOME")) return absolute_path(*home) / ".cache" / "concord";
  return {};
}

std::vector<std::filesystem::path> library_prefixes() {
  static const std::filesystem::path kFolder = library_folder();
  if (kFolder.empty()) return {};
  // lib/libconcord.so, or lib/x86_64-linux-gnu/libconcord.so.
  return {kFolder.parent_path(), kFolder.parent_path().parent_path()};
}

std::filesystem::path shared_data_directory() {
  std::error_code error;
  for (const std::filesystem::path& prefix : library_prefixes()) {
    if (std::filesystem::is_directory(prefix / "share/concord", error)) return prefix / "share/concord";
  }
  return {};
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::uint64_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  const std::uint64_t machine = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  return std::min(machine, memory_limit().value_or(machine));
}

ProcessorInfo processor_info() {
  ProcessorInfo info{.name = "CPU", .vendor = {}};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) info.name = value;
    if (line.starts_with("vendor_id")) info.vendor = value;
  }
  return info;
}

double process_age_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold spaces
  if (name_end == std::string::npos) return 0;
  constexpr std::size_t kStartTime = 20;  // of the fields after the name and a space
  const std::vector<std::string> fields = split(std::string_view(text).substr(name_end + 1), ' ');
  if (fields.size() <= kStartTime) return 0;
  const double start =
      number_in_text<double>(fields[kStartTime]).value_or(0) / static_cast<double>(sysconf(_SC_CLK_TCK));
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - start;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

bool in_main_thread() { return syscall(SYS_gettid) == getpid(); }

std::optional<int> terminal_width() {
  winsize size{};
  if (isatty(STDERR_FILENO) == 0) return std::nullopt;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace concord
