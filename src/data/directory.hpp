// Where the files of a data set lie. Internal to the room; used by the collections and the CIFAR reader.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace concord::data {

/// Throws ArgumentError unless `split` is "train" or "test".
void check_split(std::string_view split);

/// The folders to look into for the collection `name`: `directory` alone when it is not empty, else the default ones;
/// and with `inner`, the folder of that name in each.
[[nodiscard]] std::vector<std::filesystem::path> search_path(std::string_view name,
                                                             const std::filesystem::path& directory,
                                                             std::string_view inner = {});

/// Every file of `stems`, or with ".gz" after it, from the first of the folders that has them all. Throws IoError
/// saying what was looked for, where, and `advice`.
[[nodiscard]] std::vector<std::filesystem::path> find_files(std::string_view name,
                                                            const std::vector<std::string>& stems,
                                                            const std::vector<std::filesystem::path>& folders,
                                                            std::string_view advice);

}  // namespace concord::data
