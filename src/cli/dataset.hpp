// --data: the data sets a command accepts by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "concord/concord.hpp"

namespace concord::cli {

/// What --data takes, for --help.
inline constexpr const char* kDataHelp =
    "fashion-mnist, mnist, emnist-balanced, cifar10, cifar100, random; or NAME:DIRECTORY for files elsewhere";

/// "train" or "test" of a named data set. "random" is synthetic data of the model's input shape. Throws ArgumentError
/// for an unknown name, and when the samples do not have the shape `input`.
[[nodiscard]] Dataset open_dataset(const std::string& name, std::string_view split, const Shape& input, int classes,
                                   std::uint64_t seed);

}  // namespace concord::cli
