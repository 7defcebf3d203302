// The path of a group counts from the host's root, or from the container's root if the container has a namespace of its
// own. So files are looked for in the group and in all above it, and those that are not there say nothing.
#include "concord/core/control_groups.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "concord/core/text.hpp"

namespace concord {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The numbers in the first line of a file, up to a word such as "max"; none if there is no file.
std::vector<std::int64_t> numbers_in(const fs::path& path) {
  std::vector<std::int64_t> numbers;
  const std::vector<std::string> lines = lines_of(path);
  for (const std::string& word : split(lines.empty() ? "" : lines[0], ' ')) {
    const auto number = number_in_text<std::int64_t>(word);
    if (!number) break;
    numbers.push_back(*number);
  }
  return numbers;
}

/// The folders with the files of this controller, from the group of the process to the root.
std::vector<fs::path> folders_of(const ControlGroups& groups, std::string_view controller) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& root, fs::path group) {
    for (group = group.relative_path(); !group.empty(); group = group.parent_path()) folders.push_back(root / group);
    folders.push_back(root);
  };
  for (const std::string& line : lines_of(groups.of_process)) {  // number:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {  // version 2, alone or beside version 1
      add(groups.mounted, path);
      add(groups.mounted / "unified", path);
    } else if (std::ranges::count(split(controllers, ','), controller) > 0) {
      add(groups.mounted / controllers, path);
      add(groups.mounted / controller, path);  // "cpu" leads to "cpu,cpuacct"
    }
  }
  if (folders.empty()) folders = {groups.mounted, groups.mounted / controller};
  return folders;
}

/// Of one group.
std::optional<double> quota_in(const fs::path& folder) {
  std::vector<std::int64_t> numbers = numbers_in(folder / "cpu.max");  // quota and period
  if (numbers.empty()) {
    for (const char* name : {"cpu.cfs_quota_us", "cpu.cfs_period_us"}) {
      for (const std::int64_t number : numbers_in(folder / name)) numbers.push_back(number);
    }
  }
  if (numbers.size() != 2 || numbers[0] <= 0 || numbers[1] <= 0) return std::nullopt;  // -1: no quota
  return static_cast<double>(numbers[0]) / static_cast<double>(numbers[1]);
}

/// Of one group.
std::optional<std::uint64_t> memory_in(const fs::path& folder) {
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;  // version 1 writes the largest number of whole pages
  std::optional<std::uint64_t> least;
  for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
    const std::vector<std::int64_t> numbers = numbers_in(folder / name);
    if (numbers.empty() || numbers[0] <= 0 || numbers[0] >= kUnlimited) continue;
    const auto bytes = static_cast<std::uint64_t>(numbers[0]);
    least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

template <class T>
std::optional<T> least_in(const std::vector<fs::path>& folders, std::optional<T> (*in)(const fs::path&)) {
  std::optional<T> least;
  for (const fs::path& folder : folders) {
    if (const std::optional<T> value = in(folder)) least = std::min(least.value_or(*value), *value);
  }
  return least;
}

int processors_of_affinity() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

}  // namespace

std::optional<double> processor_quota(const ControlGroups& groups) {
  return least_in(folders_of(groups, "cpu"), quota_in);
}

std::optional<std::uint64_t> memory_limit(const ControlGroups& groups) {
  return least_in(folders_of(groups, "memory"), memory_in);
}

int usable_processors(const ControlGroups& groups) {
  const int processors = processors_of_affinity();
  const std::optional<double> quota = processor_quota(groups);
  return quota && *quota < processors ? std::max(static_cast<int>(std::ceil(*quota)), 1) : processors;
}

}  // namespace concord
