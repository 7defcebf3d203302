// What lmdb.cpp shows to tests: which file systems are those of a network. Internal to the module.
#pragma once

#include <cstdint>
#include <string_view>

namespace concord::data {

/// Its name, for a type of statfs(2); empty for others.
[[nodiscard]] std::string_view network_file_system(std::uint32_t type);

}  // namespace concord::data
