// Lists of recordings with transcripts, and transcripts as classes. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/records/name_table.hpp"

namespace concord::data {

struct TranscriptList {
  NameTable paths;                 // as they are written
  std::vector<std::string> texts;  // without blanks at both ends; UTF-8
  std::vector<std::size_t> lines;  // of each, from 1
};

/// A line is a path, a blank or a tab, and the transcript. A path that holds blanks stands in quotes, where "" is a
/// quote, or a tab follows it. Empty lines do not count. Throws FormatError with `file` and the line.
[[nodiscard]] TranscriptList parse_transcript_list(std::string_view text, const std::filesystem::path& file);

/// The characters of an alphabet: the one at k has the class k + 1.
class Alphabet {
 public:
  /// Throws ArgumentError if it is empty, not UTF-8, or has a character twice.
  explicit Alphabet(std::string_view text);
  [[nodiscard]] std::size_t size() const { return characters_.size(); }
  [[nodiscard]] std::string_view character(std::size_t index) const { return characters_[index]; }
  /// The classes of a text in UTF-8. Throws ArgumentError with the first character that is not in the alphabet.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;

 private:
  std::vector<std::string> characters_;
  std::map<std::string, std::int32_t, std::less<>> classes_;
};

/// The steps that CTC needs for classes: one for each, and a blank between two equal ones.
[[nodiscard]] std::int64_t steps_for(const std::vector<std::int32_t>& classes);

}  // namespace concord::data
