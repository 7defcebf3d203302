// Files and folders of packing.
#include "concord/cli/data/pack_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/class_file.hpp"

namespace concord::cli {
namespace {

std::filesystem::path class_file_in(const std::filesystem::path& folder) { return folder / data::kClassFile; }

/// Throws for the first file that is not ours.
void check_replaceable(const std::filesystem::path& folder,
                       const std::function<bool(const std::filesystem::path&)>& is_ours) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const std::filesystem::path name = entry.path().lexically_relative(folder);
    CONCORD_CHECK(
        is_ours(name), IoError,
        "{} has files that `concord data pack` did not write there, such as {}; --force does not remove them: "
        "remove them yourself, or take another folder",
        printable(folder.string()), printable(name.string()));
  }
}

}  // namespace

void write_packed_file(const std::filesystem::path& path, std::string_view content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  CONCORD_CHECK(!file.fail(), IoError, "cannot write {}: {}", printable(path.string()),
                errno == 0 ? "unknown reason" : std::generic_category().message(errno));
}

void check_class_file(const std::filesystem::path& folder, const std::vector<std::string>& names, bool is_forced,
                      const std::vector<std::filesystem::path>& others) {
  const std::string wanted = names.empty() ? "" : data::class_file_text(names);  // throws for what cannot be written
  const std::filesystem::path path = class_file_in(folder);
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (is_there ? !names.empty() && read_file(path) == wanted : names.empty()) return;
  CONCORD_CHECK(others.empty(), IoError,
                "{} has the shards of another set, such as {}, {}; pack into another folder, since {} holds for all "
                "shards beside it",
                printable(absolute_path(folder.empty() ? "." : folder).string()),
                printable(others.empty() ? "" : others[0].filename().string()),
                is_there ? "whose classes are others" : "whose classes have no names", data::kClassFile);
  CONCORD_CHECK(!is_there || is_forced, IoError,
                "{} is there already and has other classes: pack into another folder, or --force {} it",
                printable(path.string()), names.empty() ? "removes" : "writes over");
}

void write_class_file(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  const std::filesystem::path path = class_file_in(folder);
  std::error_code ignored;
  if (names.empty()) {
    std::filesystem::remove(path, ignored);
  } else {
    write_file_atomically(path, bytes_of(data::class_file_text(names)));
  }
}

NewFolder::NewFolder(std::filesystem::path path, bool is_forced,
                     const std::function<bool(const std::filesystem::path&)>& is_ours)
    : path_(std::move(path)) {
  if (path_.filename().empty()) path_ = path_.parent_path();  // "x/"
  temporary_ = path_;
  temporary_ += kIncomplete;
  std::error_code error;
  const std::filesystem::path parent = path_.parent_path();
  CONCORD_CHECK(parent.empty() || std::filesystem::is_directory(parent, error), IoError, "there is no folder {}",
                printable(parent.string()));
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, error))) {
    CONCORD_CHECK(std::filesystem::is_directory(path_, error) && !std::filesystem::is_symlink(path_, error), IoError,
                  "{} is there already and is no folder", printable(path_.string()));
    if (!std::filesystem::is_empty(path_)) {
      CONCORD_CHECK(is_forced, IoError, "{} is there already; --force writes over it", printable(path_.string()));
      check_replaceable(path_, is_ours);
    }
  }
  std::filesystem::remove_all(temporary_);  // of a run that was killed
  std::filesystem::create_directory(temporary_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!is_finished_) std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::finish() {
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    std::filesystem::path old = path_;
    old += ".replaced";
    std::filesystem::remove_all(old);
    std::filesystem::rename(path_, old);
    std::filesystem::rename(temporary_, path_);
    is_finished_ = true;
    std::filesystem::remove_all(old);
    return;
  }
  std::filesystem::rename(temporary_, path_);
  is_finished_ = true;
}

}  // namespace concord::cli
