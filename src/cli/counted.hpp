// Numbers with their nouns, in messages and tables of every subcommand.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace concord::cli {

/// "1 step", "2 steps"; with `many` "1 entry", "2 entries".
[[nodiscard]] std::string counted(std::integral auto count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace concord::cli
