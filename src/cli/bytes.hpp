// Numbers of bytes on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace concord::cli {

/// A number of bytes as people write it: "1000000", "512KiB", "1.5 GiB". Throws ArgumentError.
[[nodiscard]] std::size_t parse_bytes(const std::string& text);
/// Refuses what parse_bytes throws for.
[[nodiscard]] CLI::Validator number_of_bytes();

}  // namespace concord::cli
