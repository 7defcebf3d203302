// --validate: the validation data of a training.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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
  /// Throws ArgumentError for options of a split where there is none.
  void check() const;
  [[nodiscard]] bool is_split() const { return source == "split"; }
  /// Whether the data's own validation part is taken, if it has one: not where a part was asked for, now or in the
  /// training that goes on.
  [[nodiscard]] bool may_use_part() const { return part_option->count() == 0 && before_ != Before::held_out; }
  /// Notes whether the data's own part was taken, for the metadata. Throws ArgumentError if a training that was
  /// validated on such a part goes on without one: it would be validated on samples that it was trained on.
  void note_part(bool was_taken, const std::string& data);
  /// How many of so many samples are held out. Throws ArgumentError, with the name of the data, if there are too few.
  [[nodiscard]] std::int64_t held_out_of(std::string_view data, std::int64_t samples) const;
  /// For TrainerOptions::metadata.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;

 private:
  /// What the training that goes on was validated on, as far as it says.
  enum class Before : std::uint8_t { unknown, part, held_out };
  Before before_ = Before::unknown;
  bool has_part_ = false;
};

}  // namespace concord::cli
