// Files of the kernel with one number each, such as counters of energy.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace concord {

/// Nothing if the file does not exist, cannot be read, or does not begin with a number.
[[nodiscard]] inline std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::string word;
  std::uint64_t number = 0;
  if (!(std::ifstream(file) >> word)) return std::nullopt;
  const bool is_number = std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc{};
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace concord
