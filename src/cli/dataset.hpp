// --data: the data sets a command accepts by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "concord/concord.hpp"

namespace concord::cli {

/// What --data takes, for --help.
inline constexpr const char* kDataHelp =
    "fashion-mnist, mnist, emnist-balanced, cifar10, cifar100, random; NAME:DIRECTORY for files elsewhere; "
    "text:FILE for models of language";

/// "train" or "test" of a named data set. "random" is synthetic data for the model. Throws ArgumentError for an unknown
/// name, and when the samples or their labels are not what the model takes.
[[nodiscard]] Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model,
                                   std::uint64_t seed);

/// The model's network as published, but for the words that a language model knows, which are those of the data.
[[nodiscard]] std::shared_ptr<nn::Module> network_for(const models::Model& model, const Dataset& data);

}  // namespace concord::cli
