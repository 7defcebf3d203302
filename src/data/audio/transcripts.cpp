// From the lines of a list to classes, and from classes to text.
#include "concord/data/audio/transcripts.hpp"

#include <algorithm>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/audio.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kBlanks = " \t";

[[noreturn]] void fail_in_transcripts(const std::filesystem::path& file, std::size_t line, std::string_view message) {
  throw FormatError(fmt::format("{}, line {}: {}", printable(file.string()), line, message));
}

/// Takes the path from the line; nothing where its closing quote is missing or text follows it.
bool take_path(std::string_view& line, std::string& path) {
  path.clear();
  if (!line.starts_with('"')) {
    const std::size_t tab = line.find('\t'), end = tab == std::string_view::npos ? line.find(' ') : tab;
    path = line.substr(0, end);
    path.erase(path.find_last_not_of(' ') + 1);
    line.remove_prefix(std::min(end, line.size()));
    return true;
  }
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      path += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      path += line[i++];
    } else {
      line.remove_prefix(i + 1);
      return line.empty() || is_space(line.front());
    }
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// Calls take(character) for each. The text is UTF-8.
template <class Take>
void for_each_character(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    take(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace

TranscriptList parse_transcript_list(std::string_view text, const std::filesystem::path& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  TranscriptList list;
  std::string path;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find('\0') != std::string_view::npos) {
      fail_in_transcripts(file, number, "has a zero byte; a list is a text in UTF-8");
    }
    line = trimmed(line);
    if (line.empty()) continue;
    if (!take_path(line, path)) {
      fail_in_transcripts(file, number, "the path in quotes has no end, or text right after it");
    }
    const std::string_view transcript = trimmed(line);
    if (path.empty()) fail_in_transcripts(file, number, "the path is empty");
    if (transcript.empty()) fail_in_transcripts(file, number, "there is no transcript after the path");
    if (!is_utf8(transcript)) {
      fail_in_transcripts(file, number, fmt::format("the transcript is not UTF-8: {}", printable(transcript)));
    }
    list.paths.add(path);
    list.texts.emplace_back(transcript);
    list.lines.push_back(number);
  }
  CONCORD_CHECK(!list.texts.empty(), FormatError, "{}: the list has no line", printable(file.string()));
  return list;
}

Alphabet::Alphabet(std::string_view text) {
  CONCORD_CHECK(!text.empty() && is_utf8(text), ArgumentError, "the alphabet \"{}\" is {}", printable(text),
                text.empty() ? "empty" : "not UTF-8");
  for_each_character(text, [&](std::string_view character) {
    characters_.emplace_back(character);
    const bool is_new = classes_.emplace(character, static_cast<std::int32_t>(characters_.size())).second;
    CONCORD_CHECK(is_new, ArgumentError, "the alphabet has \"{}\" twice", printable(character));
  });
}

std::vector<std::int32_t> Alphabet::encode(std::string_view text) const {
  std::vector<std::int32_t> classes;
  for_each_character(text, [&](std::string_view character) {
    const auto found = classes_.find(character);
    CONCORD_CHECK(found != classes_.end(), ArgumentError, "the character \"{}\" is not in the alphabet of {}",
                  printable(character), characters_.size());
    classes.push_back(found->second);
  });
  return classes;
}

std::int64_t steps_for(const std::vector<std::int32_t>& classes) {
  std::size_t steps = classes.size();
  for (std::size_t i = 1; i < classes.size(); ++i) steps += classes[i] == classes[i - 1] ? 1 : 0;
  return static_cast<std::int64_t>(steps);
}

std::string characters_of(std::span<const std::string> texts) {
  std::set<std::string, std::less<>> characters;  // bytes in order are code points in order
  for (const std::string& text : texts) {
    CONCORD_CHECK(is_utf8(text), ArgumentError, "the text \"{}\" is not UTF-8", printable(text));
    for_each_character(text, [&](std::string_view character) {
      if (characters.find(character) == characters.end()) characters.emplace(character);
    });
  }
  std::string all;
  for (const std::string& character : characters) all += character;
  return all;
}

std::string transcript_of(std::string_view alphabet, std::span<const std::int32_t> classes) {
  const Alphabet characters(alphabet);
  std::string text;
  std::int32_t before = 0;
  for (const std::int32_t now : classes) {
    CONCORD_CHECK(now >= 0 && static_cast<std::size_t>(now) <= characters.size(), ArgumentError,
                  "the class {} is no character: there are {}", now, characters.size());
    if (now != 0 && now != before) text += characters.character(static_cast<std::size_t>(now) - 1);
    before = now;
  }
  return text;
}

}  // namespace concord::data
