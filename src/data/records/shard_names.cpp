// A pattern is a sequence of texts and alternatives; a name takes one of each, the last ones changing fastest.
#include "concord/data/records/shard_names.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

constexpr int kMostNestedBraces = 16;
constexpr std::size_t kMostPatternBytes = 4096;

class BraceExpansion {
 public:
  explicit BraceExpansion(const std::string& pattern) : pattern_(pattern) {}

  std::vector<std::string> expand(std::string_view text, int depth) const {
    CONCORD_CHECK(depth <= kMostNestedBraces, ArgumentError, "\"{}\": braces are nested too deep", shown());
    std::vector<std::string> names = {""};
    while (!text.empty()) {
      const std::size_t open = std::min(text.find_first_of("{}"), text.size());
      join(names, {std::string(text.substr(0, open))});
      text.remove_prefix(open);
      if (text.empty()) break;
      CONCORD_CHECK(text[0] == '{', ArgumentError, "\"{}\" has a closing brace without an opening one", shown());
      const std::size_t close = closing(text);
      join(names, alternatives(text.substr(1, close - 1), depth));
      text.remove_prefix(close + 1);
    }
    return names;
  }

 private:
  [[nodiscard]] std::string shown() const { return printable(pattern_); }

  // Where the brace closes that `text` begins with.
  [[nodiscard]] std::size_t closing(std::string_view text) const {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    throw ArgumentError(fmt::format("\"{}\" has an opening brace without a closing one", shown()));
  }

  void join(std::vector<std::string>& names, const std::vector<std::string>& ends) const {
    check_count(names.size() * ends.size());
    std::vector<std::string> joined;
    joined.reserve(names.size() * ends.size());
    for (const std::string& name : names) {
      for (const std::string& end : ends) joined.push_back(name + end);
    }
    names = std::move(joined);
  }

  // What stands between two braces.
  [[nodiscard]] std::vector<std::string> alternatives(std::string_view inner, int depth) const {
    if (auto numbers = range(inner)) return *std::move(numbers);
    std::vector<std::string> all;
    int nested = 0;
    std::size_t begin = 0;
    bool has_comma = false;
    for (std::size_t i = 0; i <= inner.size(); ++i) {
      const char c = i < inner.size() ? inner[i] : ',';
      if (c == '{') ++nested;
      if (c == '}') --nested;
      if (c != ',' || nested > 0) continue;
      has_comma = has_comma || i < inner.size();
      for (std::string& name : expand(inner.substr(begin, i - begin), depth + 1)) all.push_back(std::move(name));
      check_count(all.size());
      begin = i + 1;
    }
    if (!has_comma) {
      for (std::string& name : all) name = "{" + name + "}";
    }
    return all;
  }

  // first..last
  [[nodiscard]] std::optional<std::vector<std::string>> range(std::string_view inner) const {
    const std::size_t dots = inner.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    const std::string_view from = inner.substr(0, dots), to = inner.substr(dots + 2);
    const auto first = number_in_text<std::uint64_t>(from), last = number_in_text<std::uint64_t>(to);
    if (!first || !last) return std::nullopt;
    const bool has_width = (from.size() > 1 && from[0] == '0') || (to.size() > 1 && to[0] == '0');
    const std::size_t width = has_width ? std::max(from.size(), to.size()) : 0;
    const std::uint64_t steps = std::max(*first, *last) - std::min(*first, *last);
    CONCORD_CHECK(steps < kMostShards, ArgumentError, "\"{}\" is more than {} names", shown(), kMostShards);
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i <= steps; ++i) {
      names.push_back(fmt::format("{:0{}}", *first <= *last ? *first + i : *first - i, width));
    }
    return names;
  }

  void check_count(std::size_t count) const {
    CONCORD_CHECK(count <= kMostShards, ArgumentError, "\"{}\" is more than {} names", shown(), kMostShards);
  }

  const std::string& pattern_;
};

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  CONCORD_CHECK(!pattern.empty(), ArgumentError, "the name of the shards is empty");
  CONCORD_CHECK(pattern.size() <= kMostPatternBytes, ArgumentError, "\"{}\": a pattern has at most {} bytes",
                printable(pattern), kMostPatternBytes);
  return BraceExpansion(pattern).expand(pattern, 0);
}

}  // namespace concord::data
