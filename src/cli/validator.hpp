// The checks of option values, before any work is done. Used by every subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace concord::cli {

/// Numbers. Each refuses NaN, infinity and numbers outside the range of the type.
[[nodiscard]] CLI::Validator positive();
[[nodiscard]] CLI::Validator not_negative();
[[nodiscard]] CLI::Validator from_0_to_1();
[[nodiscard]] CLI::Validator from_0_below_1();
[[nodiscard]] CLI::Validator between_0_and_1();

/// Whole numbers, in decimal digits.
[[nodiscard]] CLI::Validator whole(std::uint64_t first, std::uint64_t last);
/// Samples, steps, epochs: from 1 to 2^31 - 1.
[[nodiscard]] CLI::Validator count();

/// One of these words. A refusal names all of them, and the one that was probably meant.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

/// Refuses an empty text, which an unset shell variable gives, if it would stand for a default.
[[nodiscard]] CLI::Validator not_empty();
/// Names of files: the same.
[[nodiscard]] CLI::Validator file_name();
/// For --data: as DataSpec::parse reads it.
[[nodiscard]] CLI::Validator data_name();
/// As data::parse_augment reads it.
[[nodiscard]] CLI::Validator augmentation();
/// "balanced", or numbers of 0 or more with commas between.
[[nodiscard]] CLI::Validator weights_of_classes();
/// "auto", or a number from 1 to 1024.
[[nodiscard]] CLI::Validator auto_or_count();
/// A valid selector of a device (Device::open), whether or not this machine has such a device.
[[nodiscard]] CLI::Validator device_selector();
/// Several selectors, separated by commas.
[[nodiscard]] CLI::Validator device_selectors(bool may_be_all = false);

}  // namespace concord::cli
