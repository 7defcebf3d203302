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

/// What --data takes, for --help.
inline constexpr const char* kDataHelp =
    "fashion-mnist, mnist, emnist-balanced, cifar10, cifar100, random; NAME:DIRECTORY for files in another folder; "
    "text:FILE for language models";

/// "train" or "test" of a named data set. "random" is synthetic data for the model. Text is told in the characters of
/// `alphabet`; empty: in those of the file. Throws ArgumentError for an unknown name, and when the samples or their
/// labels are not what the model takes.
[[nodiscard]] Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model,
                                   std::uint64_t seed, const std::string& alphabet = {});

/// What a training validates on: a part that is held out of the training set, the test split, or nothing.
struct ValidationOptions {
  std::string source = "split";
  double part = 0.1;       // of the training set, at least one sample
  std::uint64_t seed = 0;  // which samples; not the training's, so that trainings of other seeds compare
  CLI::Option *source_option = nullptr, *part_option = nullptr, *seed_option = nullptr;

  void add(CLI::App& command);
  /// Takes what the checkpoint's training had for options that were not given; warns of those that differ from it.
  void follow(const std::string& checkpoint);
  [[nodiscard]] bool is_split() const { return source == "split"; }
  /// The training set without what is held out, and what is; nothing is where `source` says something else.
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
