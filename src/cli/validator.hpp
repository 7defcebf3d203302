// What the values of options must be, told before any work is done; used by every subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace concord::cli {

/// Numbers. NaN, infinity and what has no end in the type are refused by each.
[[nodiscard]] CLI::Validator positive();
[[nodiscard]] CLI::Validator not_negative();
[[nodiscard]] CLI::Validator from_0_to_1();
[[nodiscard]] CLI::Validator from_0_below_1();
[[nodiscard]] CLI::Validator between_0_and_1();

/// Whole numbers, in decimal digits.
[[nodiscard]] CLI::Validator whole(std::uint64_t first, std::uint64_t last);
/// Samples, steps, epochs: from 1 to 2^31 - 1.
[[nodiscard]] CLI::Validator count();

/// Refuses the empty text that an unset variable of a shell gives, where it would stand for a default.
[[nodiscard]] CLI::Validator not_empty();
/// Names of files: the same.
[[nodiscard]] CLI::Validator file_name();
/// Of --data: not empty, and with a folder or file behind its colon, where there is one.
[[nodiscard]] CLI::Validator data_name();
/// What can be read as a selector of a device (Device::open), whether or not this machine has such a device.
[[nodiscard]] CLI::Validator device_selector();
/// Several, with commas between them.
[[nodiscard]] CLI::Validator device_selectors();

}  // namespace concord::cli
