// --data: the data sets a command accepts by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "concord/concord.hpp"

namespace concord::cli {

/// What --data takes, for --help.
inline constexpr const char* kDataHelp =
    "fashion-mnist, mnist, emnist-balanced, cifar10, cifar100, random; NAME:DIRECTORY for files elsewhere; "
    "text:FILE for models of language";

/// "train" or "test" of a named data set. "random" is synthetic data for the model. Text is told in the characters of
/// `alphabet`; empty: in those of the file. Throws ArgumentError for an unknown name, and when the samples or their
/// labels are not what the model takes.
[[nodiscard]] Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model,
                                   std::uint64_t seed, const std::string& alphabet = {});

/// The alphabet of --data text:FILE; empty for other data.
[[nodiscard]] std::string alphabet_of(const std::string& name);
/// An alphabet as the metadata of weights and checkpoints keeps it: its bytes in hexadecimal.
[[nodiscard]] std::map<std::string, std::string> alphabet_metadata(const std::string& alphabet);
/// The alphabet kept in such a file; empty when there is none. Throws as io::read_safetensors.
[[nodiscard]] std::string saved_alphabet(const std::string& file);

/// The model as published, but for the words that a language model knows, which are those of the data.
[[nodiscard]] models::Variant variant_for(const models::Model& model, const Dataset& data);
[[nodiscard]] std::shared_ptr<nn::Module> network_for(const models::Model& model, const Dataset& data);

}  // namespace concord::cli
