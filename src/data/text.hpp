// Text as a data set, character by character: what a language model of letters is trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

struct Characters {
  std::string alphabet;  // the bytes that occur, in order; number i stands for alphabet[i]
  /// features i32 [N, length]; labels i32 [N, length], at each place the character that comes next. The validation set
  /// is the end of the text, which no sample of the training set touches. Class names are the characters, those that do
  /// not print as "0x0a".
  Dataset train, validation;
};

struct CharacterOptions {
  std::int64_t length = 64;      // characters of a sample
  std::int64_t stride = 0;       // from the start of a sample to that of the next; 0: the length
  double validation_part = 0.1;  // of the text
  std::string alphabet = {};     // that a model was trained with; empty: the characters of the file
};

/// Reads a file. Throws IoError when it cannot be read, ArgumentError when options are out of range, when either part
/// is shorter than a sample and its next character, or naming the first character that a given alphabet does not have
/// and the byte that it stands at.
[[nodiscard]] Characters characters(const std::filesystem::path& file, const CharacterOptions& options = {});

/// The bytes that occur in a text, in order.
[[nodiscard]] std::string alphabet_of(std::string_view text);
/// The numbers of a text, a byte each. Throws ArgumentError naming the first character that the alphabet does not have,
/// and its byte offset.
[[nodiscard]] Tensor encode(std::string_view alphabet, std::string_view text);
/// The text of numbers, each in [0, alphabet.size()).
[[nodiscard]] std::string decode(std::string_view alphabet, std::span<const std::int32_t> numbers);

}  // namespace data
}  // namespace concord
