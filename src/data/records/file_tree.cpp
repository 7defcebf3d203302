// The walk through folders, for POSIX systems. Does not use <filesystem>, whose iterators end the process when host
// memory runs out. A million files are listed without a query for each: folders say what their entries are.
#include "concord/data/records/file_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/class_file.hpp"

namespace concord::data {
namespace {

enum class EntryKind : std::uint8_t { file, folder, dead, other };

struct TreeEntry {
  std::string name;  // of a folder with a '/', so that sorted entries give sorted paths
  EntryKind kind = EntryKind::other;
};

using FolderId = std::pair<dev_t, ino_t>;

[[noreturn]] void fail_to_list(const std::filesystem::path& folder) {
  const int reason = errno;
  const std::string text =
      fmt::format("cannot read the folder {}: {}", printable(folder.string()), std::strerror(reason));
  if (reason == ENOMEM) throw OutOfMemory(text);
  throw IoError(text);
}

EntryKind kind_of(int folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return EntryKind::file;
  if (entry.d_type == DT_DIR) return EntryKind::folder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return EntryKind::other;
  struct stat status {};
  if (fstatat(folder, entry.d_name, &status, 0) != 0) return EntryKind::dead;
  if (S_ISREG(status.st_mode)) return EntryKind::file;
  return S_ISDIR(status.st_mode) ? EntryKind::folder : EntryKind::other;
}

class TreeWalk {
 public:
  TreeWalk(std::filesystem::path root, const std::function<bool(std::string_view)>& wanted)
      : root_(std::move(root)), wanted_(wanted) {}

  FileTree walk() {
    visit("", -1);
    sort_folders();
    return std::move(tree_);
  }

 private:
  void visit(const std::string& path, std::int32_t folder) {
    for (const TreeEntry& entry : entries_of(path)) {
      const std::string inner = path + entry.name;
      if (entry.name.starts_with('.')) {
        tree_.hidden.add(inner);
      } else if (entry.kind == EntryKind::folder) {
        std::int32_t below = folder;
        if (folder < 0) {
          below = static_cast<std::int32_t>(tree_.folders.size());
          tree_.folders.emplace_back(entry.name, 0, entry.name.size() - 1);
          entered_.clear();
          entered_.insert(root_id_);
        }
        visit(inner, below);
      } else if (entry.kind == EntryKind::dead) {
        tree_.dead.add(inner);
      } else if (entry.kind == EntryKind::file && wanted_(entry.name)) {
        tree_.paths.add(inner);
        tree_.folder.push_back(folder);
      } else if (inner != kClassFile && inner != kListFile) {
        tree_.different.add(inner);
      }
    }
  }

  // Sorted. None where the folder was entered before.
  std::vector<TreeEntry> entries_of(const std::string& path) {
    const std::filesystem::path whole = path.empty() ? root_ : root_ / path;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(whole.c_str()), closedir);
    if (folder == nullptr) fail_to_list(whole);
    struct stat status {};
    if (fstat(dirfd(folder.get()), &status) != 0) fail_to_list(whole);
    if (path.empty()) root_id_ = {status.st_dev, status.st_ino};
    if (!entered_.emplace(status.st_dev, status.st_ino).second) {
      tree_.repeated.add(path);
      return {};
    }
    std::vector<TreeEntry> entries;
    errno = 0;
    while (const dirent* const entry = readdir(folder.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const EntryKind kind = kind_of(dirfd(folder.get()), *entry);
      entries.push_back({kind == EntryKind::folder ? fmt::format("{}/", name) : std::string(name), kind});
      errno = 0;  // kind_of may have set it
    }
    if (errno != 0) fail_to_list(whole);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  // They were met in the order of paths, where "a-b/" comes before "a/".
  void sort_folders() {
    std::vector<std::pair<std::string, std::size_t>> sorted;
    for (std::size_t i = 0; i < tree_.folders.size(); ++i) sorted.emplace_back(std::move(tree_.folders[i]), i);
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int32_t> index(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      tree_.folders[i] = std::move(sorted[i].first);
      index[sorted[i].second] = static_cast<std::int32_t>(i);
    }
    for (std::int32_t& folder : tree_.folder) {
      if (folder >= 0) folder = index[static_cast<std::size_t>(folder)];
    }
  }

  std::filesystem::path root_;
  const std::function<bool(std::string_view)>& wanted_;
  FolderId root_id_;
  std::set<FolderId> entered_;  // the root, and what is below the first-level folder that is visited
  FileTree tree_;
};

}  // namespace

FileTree list_tree(const std::filesystem::path& folder, const std::function<bool(std::string_view name)>& wanted) {
  return TreeWalk(folder, wanted).walk();
}

}  // namespace concord::data
