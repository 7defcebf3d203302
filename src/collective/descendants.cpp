// Process groups would take the terminal from the ranks: its Ctrl-C would not reach them, and to read from it would
// stop them. A subreaper would get orphans without knowing of which rank. So /proc tells parents and environments.
#include "concord/collective/descendants.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>

#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::collective {
namespace {

struct Living {
  pid_t parent = 0;
  bool is_marked = false;
};

/// Empty if it cannot be read.
std::string text_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Nothing of a process that has ended. The text is "12 (name) S 7 …", and a name may be anything.
std::optional<pid_t> parent_in(const std::string& text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> words = split(std::string_view(text).substr(name_end + 1), ' ');  // "", "S", "7"
  if (words.size() < 3 || words[1] == "Z" || words[1] == "X") return std::nullopt;
  return number_in_text<pid_t>(words[2]);
}

/// Whether an environment, in which each variable ends with a zero, has all of these.
bool has_all(const std::string& variables, const std::vector<std::string>& marks) {
  const std::vector<std::string> own = split(variables, '\0');
  return !marks.empty() &&
         std::ranges::all_of(marks, [&](const std::string& mark) { return std::ranges::find(own, mark) != own.end(); });
}

std::map<pid_t, Living> living_processes(const std::vector<std::string>& marks) {
  std::map<pid_t, Living> all;
  for (const std::filesystem::path& folder : paths_in("/proc")) {
    const std::optional<pid_t> number = number_in_text<pid_t>(folder.filename().string());
    if (!number || *number == ::getpid()) continue;
    const std::optional<pid_t> parent = parent_in(text_in(folder / "stat"));
    if (parent) all[*number] = {*parent, has_all(text_in(folder / "environ"), marks)};
  }
  return all;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t rank, const std::vector<std::string>& marks) {
  const std::map<pid_t, Living> all = living_processes(marks);
  std::vector<pid_t> found;
  for (const auto& [number, process] : all) {
    if (number == rank) continue;
    bool is_found = process.is_marked;
    std::size_t steps = 0;  // a number that another process took meanwhile may close a circle
    for (auto one = all.find(number); !is_found && one != all.end() && steps < all.size(); ++steps) {
      const pid_t parent = one->second.parent;
      one = all.find(parent);
      is_found = (rank > 0 && parent == rank) || (one != all.end() && one->second.is_marked);
    }
    if (is_found) found.push_back(number);
  }
  return found;
}

}  // namespace concord::collective
