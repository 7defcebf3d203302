// A pattern is pieces without '*': the first begins the name, the last ends it, each other one is found as early as
// possible. An earlier place never spoils a later piece, so nothing is tried twice.
#include "concord/core/name_pattern.hpp"

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

using Parts = std::vector<std::string_view>;

/// The end of `piece` where it begins at `at`; the numbers in it go to `parts`.
std::optional<std::size_t> match_at(std::string_view piece, std::string_view name, std::size_t at, Parts& parts) {
  const std::size_t before = parts.size();
  for (const char c : piece) {
    const std::size_t begin = at;
    if (c == '#') {
      while (at < name.size() && is_digit(name[at])) ++at;
      if (at > begin) parts.push_back(name.substr(begin, at - begin));
    } else if (at < name.size() && name[at] == c) {
      ++at;
    }
    if (at == begin) {
      parts.resize(before);
      return std::nullopt;
    }
  }
  return at;
}

}  // namespace

std::optional<std::vector<std::string_view>> match_name(std::string_view pattern, std::string_view name) {
  Parts parts;
  std::size_t star = pattern.find('*');
  const auto first = match_at(pattern.substr(0, star), name, 0, parts);
  if (!first) return std::nullopt;
  std::size_t at = *first;
  while (star != std::string_view::npos) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    const std::string_view piece = pattern.substr(0, star);
    const bool is_last = star == std::string_view::npos;
    const std::size_t begin = at, place = parts.size();
    parts.emplace_back();  // what this '*' stands for; numbers of the piece come behind it
    std::optional<std::size_t> end;
    for (; at <= name.size() && !end; ++at) {
      end = match_at(piece, name, at, parts);
      if (end && is_last && *end != name.size()) {
        parts.resize(place + 1);
        end.reset();
      }
    }
    if (!end) return std::nullopt;
    parts[place] = name.substr(begin, at - 1 - begin);
    at = *end;
  }
  return at == name.size() ? std::optional(parts) : std::nullopt;
}

std::string with_parts(std::string_view text, const std::vector<std::string_view>& parts) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size() || !is_digit(text[i + 1])) {
      result += text[i];
      continue;
    }
    const auto number = static_cast<std::size_t>(text[++i] - '0');
    CONCORD_CHECK(number >= 1 && number <= parts.size(), ArgumentError,
                  "'{}': ${} stands for nothing; there are {} parts", text, number, parts.size());
    result += parts[number - 1];
  }
  return result;
}

}  // namespace concord
