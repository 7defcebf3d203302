// The search for data files, and the sentence a user gets when they are not there.
#include "concord/data/directory.hpp"

#include <fmt/ranges.h>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

// An empty path when there is neither `stem` nor `stem`.gz.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem) {
  std::error_code ignored;  // a folder that cannot be looked into has no files for us
  for (const char* suffix : {"", ".gz"}) {
    std::filesystem::path path = folder / (stem + suffix);
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

}  // namespace

void check_split(std::string_view split) {
  CONCORD_CHECK(split == "train" || split == "test", ArgumentError,
                "there is no split \"{}\"; there are \"train\" and \"test\"", split);
}

std::vector<std::filesystem::path> search_path(std::string_view name, const std::filesystem::path& directory,
                                               std::string_view inner) {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const std::filesystem::path& folder) {
    folders.push_back(folder);
    if (!inner.empty()) folders.push_back(folder / inner);
  };
  if (!directory.empty()) {
    add(directory);
    return folders;
  }
  if (const auto own = environment("CONCORD_DATA_DIR")) {
    add(std::filesystem::path(*own) / name);
    add(*own);
  }
  add(std::filesystem::path("/usr/share/datasets") / name);
  return folders;
}

std::vector<std::filesystem::path> find_files(std::string_view name, const std::vector<std::string>& stems,
                                              const std::vector<std::filesystem::path>& folders,
                                              std::string_view advice) {
  for (const auto& folder : folders) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& stem : stems) {
      std::filesystem::path path = find_file(folder, stem);
      if (path.empty()) break;
      paths.push_back(std::move(path));
    }
    if (paths.size() == stems.size()) return paths;
  }
  std::vector<std::string> places;
  for (const auto& folder : folders) places.push_back(printable(folder.string()));
  throw IoError(
      fmt::format("data set {} not found: searched for {} (each also with .gz) in {}; {}, then give its folder or set "
                  "CONCORD_DATA_DIR",
                  name, fmt::join(stems, ", "), fmt::join(places, ", "), advice));
}

}  // namespace concord::data
