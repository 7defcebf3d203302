// Edit distances between transcripts, by characters and by words.
#include <algorithm>
#include <numeric>

#include "concord/core/utf8.hpp"
#include "concord/data/audio.hpp"

namespace concord::data {
namespace {

using Symbols = std::vector<std::string_view>;

Symbols characters_in(std::string_view text) {
  Symbols characters;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    characters.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return characters;
}

Symbols words_in(std::string_view text) {
  Symbols words;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return words;
}

/// Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals", 1966: one row of the table.
std::int64_t edits_between(const Symbols& a, const Symbols& b) {
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

double error_rate(std::int64_t edits, std::int64_t symbols) {
  if (edits == 0) return 0;
  return static_cast<double>(edits) / static_cast<double>(std::max<std::int64_t>(symbols, 1));
}

}  // namespace

void TranscriptErrors::add(std::string_view transcript, std::string_view recognised) {
  const Symbols own = characters_in(transcript), own_words = words_in(transcript);
  characters += std::ssize(own);
  character_edits += edits_between(own, characters_in(recognised));
  words += std::ssize(own_words);
  word_edits += edits_between(own_words, words_in(recognised));
}

double TranscriptErrors::character_error_rate() const { return error_rate(character_edits, characters); }

double TranscriptErrors::word_error_rate() const { return error_rate(word_edits, words); }

}  // namespace concord::data
