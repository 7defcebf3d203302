// --validate: the validation data of a training.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "concord/concord.hpp"

namespace concord::cli {

/// A part of the training set, the validation part that the set comes with, the test part, or none.
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
  /// How many of `samples` are held out. Throws ArgumentError if there are too few.
  [[nodiscard]] std::int64_t held_out_of(const Samples& samples) const;
  /// For TrainerOptions::metadata.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;
};

}  // namespace concord::cli
