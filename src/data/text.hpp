// Text as a data set, character by character: what a language model of letters is trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/dataset.hpp"

namespace concord::data {

struct Characters {
  std::string alphabet;  // the bytes that occur, in order; number i stands for alphabet[i]
  /// features i32 [N, length]; labels i32 [N, length], at each place the character that comes next. The validation set
  /// is the end of the text, which no sample of the training set touches.
  Dataset train, validation;
};

struct CharacterOptions {
  std::int64_t length = 64;      // characters of a sample
  std::int64_t stride = 0;       // from the start of a sample to that of the next; 0: the length
  double validation_part = 0.1;  // of the text
};

/// Reads a file. Throws IoError when it cannot be read, ArgumentError when options are out of range or either part is
/// shorter than a sample and its next character.
[[nodiscard]] Characters characters(const std::filesystem::path& file, const CharacterOptions& options = {});

/// The numbers of a text. Throws ArgumentError for a character that the alphabet does not have.
[[nodiscard]] Tensor encode(std::string_view alphabet, std::string_view text);
/// The text of numbers, each in [0, alphabet.size()).
[[nodiscard]] std::string decode(std::string_view alphabet, std::span<const std::int32_t> numbers);

}  // namespace concord::data
