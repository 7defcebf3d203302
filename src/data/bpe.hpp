// Byte-level BPE, the tokens of GPT-2 and its kind, and texts of such tokens as a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Byte-level byte pair encoding (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019). A text
/// is cut into words by GPT-2's pattern
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// with the letters and numbers of Unicode 16; a byte that is not part of UTF-8 counts as a mark. The bytes of a word
/// are tokens, of which the two neighbours that come first in the merges become one, the leftmost first, until none are
/// left.
///
/// Copies share the tables. Several threads use one object.
class Bpe {
 public:
  /// Reads vocab.json, an object of tokens and their numbers, and merges.txt, two tokens a line, as GPT-2 and
  /// Hugging Face write them: bytes that do not print are other characters in them. A token with characters that stand
  /// for no byte is special: it is decoded, but no text becomes it, nor does a text become "<|endoftext|>".
  ///
  /// Throws IoError; FormatError with file and line for what is damaged: numbers that occur twice or are far above the
  /// count of tokens, merges of tokens that there are not, or that occur twice.
  [[nodiscard]] static Bpe read(const std::filesystem::path& vocab, const std::filesystem::path& merges);

  /// The same from the texts of these two files. Messages begin with `subject`.
  [[nodiscard]] static Bpe parse(std::string_view vocab, std::string_view merges, std::string_view subject);
  /// The texts of the two files, such as for the metadata of a trained model.
  [[nodiscard]] const std::string& vocab() const;
  [[nodiscard]] const std::string& merges() const;

  /// One more than the largest number of a token.
  [[nodiscard]] std::int64_t size() const;
  /// Throws ArgumentError for a byte that has no token.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;
  /// The bytes of tokens. Throws ArgumentError for a number that is no token.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  struct Tables;
  explicit Bpe(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}
  std::shared_ptr<const Tables> tables_;
};

struct TokenOptions {
  std::int64_t length = 64;      // tokens in a sample
  std::int64_t stride = 0;       // distance between the starts of two samples; 0: the length
  double validation_part = 0.1;  // part of the tokens; with 0 all of them are `train`, and `validation` is empty
};

struct Tokens {
  /// features i32 [N, length]; labels i32 [N, length]: the next token at each position. The validation set is the end
  /// of the text; no training sample overlaps it. There are as many classes as Bpe::size() says.
  Dataset train, validation;
};

/// Reads texts, one behind the other. Throws IoError, what Bpe::encode throws, and ArgumentError if there is no file,
/// an option is out of range, or a part of the text is shorter than a sample and its next token.
[[nodiscard]] Tokens tokens(std::span<const std::filesystem::path> files, const Bpe& bpe,
                            const TokenOptions& options = {});

}  // namespace data
}  // namespace concord
