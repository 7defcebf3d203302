// Files of the kernel with one number each, such as counters of energy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

namespace concord {

/// Nothing where the file is not there, may not be read, or begins with something else.
[[nodiscard]] inline std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

}  // namespace concord
