// --data: the data sets a command accepts by name.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "concord/concord.hpp"

namespace concord::cli {

/// The values of --data, for --help.
inline constexpr const char* kDataHelp =
    "fashion-mnist, mnist, emnist-balanced, cifar10, cifar100, random; NAME:DIRECTORY for files in another folder; "
    "text:FILE for language models";

/// "train" or "test" of a named data set. "random" is synthetic data for the model. `alphabet` lists the characters of
/// text; if it is empty, the characters of the file count. Throws ArgumentError for an unknown name, and if the samples
/// or their labels do not fit the model.
[[nodiscard]] Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model,
                                   std::uint64_t seed, const std::string& alphabet = {});

/// The validation data of a training: a part of the training set, the test split, or none.
struct ValidationOptions {
  std::string source = "split";
  double part = 0.1;       // of the training set, at least one sample
  std::uint64_t seed = 0;  // which samples; not the training's, so that trainings of other seeds compare
  CLI::Option *source_option = nullptr, *part_option = nullptr, *seed_option = nullptr;

  void add(CLI::App& command);
  /// For options that were not given, takes the values of the checkpoint's training. Warns of given options that differ
  /// from it.
  void follow(const std::string& checkpoint);
  [[nodiscard]] bool is_split() const { return source == "split"; }
  /// The training set without the validation part, and that part; no part if `source` is something else.
  [[nodiscard]] std::pair<Dataset, std::optional<Dataset>> divide(Dataset train) const;
  /// For TrainerOptions::metadata.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;
};

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
