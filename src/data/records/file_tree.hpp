// The files below a folder, in an order that is the same everywhere. Internal to the module; used by folder.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/records/left_out.hpp"
#include "concord/data/records/name_table.hpp"

namespace concord::data {

struct FileTree {
  NameTable paths;                   // of the files, relative to the folder, sorted by their bytes
  std::vector<std::int32_t> folder;  // for each path: an index into `folders`; -1: directly in the folder
  std::vector<std::string> folders;  // names of the folders in it, sorted by their bytes

  // What is left out.
  LeftOut hidden;     // files and folders whose name begins with a point
  LeftOut dead;       // links that lead nowhere
  LeftOut repeated;   // folders that a link reaches again
  LeftOut different;  // files of which `wanted` says no, and what is no file
};

/// Beside the images in a folder that `concord data pack` wrote: no file that is left out.
inline constexpr std::string_view kListFile = "list.txt";

/// Links are followed. Below one of `folders` no folder is entered twice, so that a circle of links ends. Throws
/// IoError for a folder that cannot be read.
[[nodiscard]] FileTree list_tree(const std::filesystem::path& folder,
                                 const std::function<bool(std::string_view name)>& wanted);

}  // namespace concord::data
