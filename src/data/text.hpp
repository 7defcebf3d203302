// Text as a data set of characters, for language models.
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
  std::string alphabet;  // the bytes in the text, sorted; index i stands for alphabet[i]
  /// features i32 [N, length]; labels i32 [N, length]: the next character at each position. The validation set is the
  /// end of the text; no training sample overlaps it. Class names are the characters; a character that is not printable
  /// is written as "0x0a".
  Dataset train, validation;
};

struct CharacterOptions {
  std::int64_t length = 64;      // characters in a sample
  std::int64_t stride = 0;       // distance between the starts of two samples; 0: the length
  double validation_part = 0.1;  // part of the text; with 0 all of it is `train`, and `validation` is empty
  std::string alphabet = {};     // the alphabet of a trained model; empty: the characters of the file
};

/// Reads a text file. Throws IoError if it cannot be read. Throws ArgumentError if an option is out of range, if a part
/// of the text is shorter than a sample and its next character, or if a character is not in the given alphabet; the
/// message names the first such character and its byte offset.
[[nodiscard]] Characters characters(const std::filesystem::path& file, const CharacterOptions& options = {});
/// Reads several, one behind the other.
[[nodiscard]] Characters characters(std::span<const std::filesystem::path> files, const CharacterOptions& options = {});

/// The bytes in a text, sorted, each once.
[[nodiscard]] std::string alphabet_of(std::string_view text);
/// Converts a text to indices i32, one for each byte. Throws ArgumentError with the first character that is not in the
/// alphabet, and its byte offset.
[[nodiscard]] Tensor encode(std::string_view alphabet, std::string_view text);
/// Converts indices in [0, alphabet.size()) to text. Throws ArgumentError for another index.
[[nodiscard]] std::string decode(std::string_view alphabet, std::span<const std::int32_t> numbers);

}  // namespace data
}  // namespace concord
