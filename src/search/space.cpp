// The grammar of spaces, and the values of parameters.
#include "concord/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/search/draw.hpp"

namespace concord::search {
namespace {

constexpr std::int64_t kMostCombinations = 1'000'000;
constexpr double kLargestWhole = 0x1p53;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_whole_text(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

/// Few digits, which people read, unless the range needs more of them.
std::string real_text(const Parameter& parameter, double value) {
  const double low = parameter.low, high = parameter.high;
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low < 1e-2 * size) return fmt::format("{}", std::clamp(value, low, high));
  const double rounded = *number_in_text<double>(fmt::format("{:.5g}", value));
  return fmt::format("{}", std::clamp(rounded, low, high));
}

std::string number_text(const Parameter& parameter, double value) {
  if (!parameter.is_whole) return real_text(parameter, value);
  return fmt::format("{}", static_cast<std::int64_t>(std::clamp(value, parameter.low, parameter.high)));
}

/// The number at `unit`, of the closed range.
double on_scale(const Parameter& parameter, double low, double high, double unit) {
  if (parameter.kind != Parameter::Kind::log) return low + unit * (high - low);
  return std::exp(std::log(low) + unit * (std::log(high) - std::log(low)));
}

/// One "NAME=values".
class ParameterText {
 public:
  ParameterText(std::string_view name, std::string_view values) : name_(name), values_(values) {}

  [[nodiscard]] Parameter read() const {
    Parameter parameter{.name = std::string(name_)};
    if (values_.starts_with('[')) {
      parameter.kind = Parameter::Kind::uniform;
      read_range(parameter, inside(1, ']'));
    } else if (values_.starts_with("log(")) {
      parameter.kind = Parameter::Kind::log;
      read_range(parameter, inside(4, ')'));
    } else if (values_.starts_with('{')) {
      read_choices(parameter, inside(1, '}'));
    } else {
      require(!values_.empty(), "it has no value");
      parameter.choices = {std::string(values_)};
    }
    return parameter;
  }

 private:
  void require(bool condition, std::string_view problem) const {
    CONCORD_CHECK(condition, ArgumentError, "space: {}={}: {}", printable(name_), printable(values_), problem);
  }

  [[nodiscard]] std::string_view inside(std::size_t begin, char close) const {
    require(values_.back() == close, fmt::format("it must end with {}", close));
    return values_.substr(begin, values_.size() - begin - 1);
  }

  [[nodiscard]] double end_of_range(std::string_view text) const {
    const auto number = number_in_text<double>(text);
    require(number && std::isfinite(*number), fmt::format("'{}' is not a finite number", printable(text)));
    return *number;
  }

  void read_range(Parameter& parameter, std::string_view text) const {
    std::vector<std::string> words;
    for (const std::string& word : split(text, ',')) words.emplace_back(trimmed(word));
    require(words.size() == 2 || words.size() == 3, "a range has two ends, and may have a number of values: [a,b,n]");
    parameter.low = end_of_range(words[0]);
    parameter.high = end_of_range(words[1]);
    parameter.is_whole = is_whole_text(words[0]) && is_whole_text(words[1]);
    require(parameter.low <= parameter.high,
            fmt::format("the range is empty: {} is above {}", parameter.low, parameter.high));
    require(parameter.low < parameter.high,
            fmt::format("the range has one value; write {}={}", printable(name_), words[0]));
    require(parameter.kind != Parameter::Kind::log || parameter.low > 0, "a logarithmic range begins above 0");
    require(!parameter.is_whole || (parameter.low >= -kLargestWhole && parameter.high <= kLargestWhole),
            "a whole number is out of range");
    if (words.size() == 2) return;
    const auto points = number_in_text<std::int64_t>(words[2]);
    require(points && *points >= 2 && *points <= kMostCombinations,
            fmt::format("'{}' is not a number of values from 2 to {}", printable(words[2]), kMostCombinations));
    require(!parameter.is_whole || static_cast<double>(*points) <= parameter.high - parameter.low + 1,
            fmt::format("the range has fewer than {} whole numbers", *points));
    parameter.points = *points;
    std::vector<std::string> values;
    for (std::int64_t i = 0; i < *points; ++i) {
      std::string value = parameter.value(i);
      if (values.empty() || values.back() != value) values.push_back(std::move(value));
    }
    parameter.values = std::move(values);
  }

  void read_choices(Parameter& parameter, std::string_view text) const {
    const char separator = text.find('|') == std::string_view::npos ? ',' : '|';
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(separator, at), text.size());
      const std::string_view word = trimmed(text.substr(at, end - at));
      require(!word.empty(), "a choice is empty");
      require(std::ranges::find(parameter.choices, word) == parameter.choices.end(),
              fmt::format("the choice {} is there twice", printable(word)));
      parameter.choices.emplace_back(word);
      at = end + 1;
    }
  }

  std::string_view name_, values_;
};

/// The end of the values that begin at `at`: behind the closing bracket, or before the next space.
std::size_t end_of_values(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const char close = rest.starts_with('[') ? ']' : rest.starts_with('{') ? '}' : rest.starts_with("log(") ? ')' : ' ';
  if (close != ' ') {
    const std::size_t end = text.find(close, at);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  while (at < text.size() && !is_space(text[at])) ++at;
  return at;
}

}  // namespace

std::optional<std::int64_t> Parameter::count() const {
  if (kind == Kind::choice) return std::ssize(choices);
  if (!values.empty()) return std::ssize(values);
  if (points > 0) return points;
  if (is_whole) return static_cast<std::int64_t>(high - low) + 1;
  return std::nullopt;
}

std::string Parameter::value(std::int64_t i) const {
  const std::optional<std::int64_t> most = count();
  CONCORD_CHECK(most && i >= 0 && i < *most, ArgumentError, "space: {} has no value number {}", name, i);
  if (kind == Kind::choice) return choices[static_cast<std::size_t>(i)];
  if (!values.empty()) return values[static_cast<std::size_t>(i)];
  if (points == 0) return number_text(*this, low + static_cast<double>(i));
  const double number = on_scale(*this, low, high, static_cast<double>(i) / static_cast<double>(points - 1));
  return number_text(*this, is_whole ? std::round(number) : number);
}

std::string Parameter::at(double unit) const {
  if (kind == Kind::choice || points > 0) {
    const std::int64_t most = *count();
    return value(std::clamp<std::int64_t>(static_cast<std::int64_t>(unit * static_cast<double>(most)), 0, most - 1));
  }
  if (is_whole) return number_text(*this, std::floor(on_scale(*this, low, high + 1, unit)));
  return number_text(*this, on_scale(*this, low, high, unit));
}

double Parameter::place(std::string_view value) const {
  if (kind == Kind::choice) {
    const auto found = std::ranges::find(choices, value);
    CONCORD_CHECK(found != choices.end(), ArgumentError, "space: '{}' is no value of {}", printable(value), name);
    if (choices.size() == 1) return 0.5;
    return static_cast<double>(found - choices.begin()) / static_cast<double>(choices.size() - 1);
  }
  const auto number = number_in_text<double>(value);
  CONCORD_CHECK(number && *number >= low && *number <= high, ArgumentError, "space: '{}' is no value of {}",
                printable(value), name);
  return kind == Kind::log ? std::log(*number / low) / std::log(high / low) : (*number - low) / (high - low);
}

Space Space::parse(std::string_view text) {
  Space space;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    std::size_t equal = at;
    while (equal < text.size() && text[equal] != '=' && !is_space(text[equal])) ++equal;
    const std::string_view name = text.substr(at, equal - at);
    CONCORD_CHECK(equal < text.size() && text[equal] == '=' && !name.empty(), ArgumentError,
                  "space: expected NAME=values, such as lr=log(1e-4,1e-1) or batch={{32,64}}, got '{}'",
                  printable(text.substr(at)));
    const std::size_t end = end_of_values(text, equal + 1);
    CONCORD_CHECK(end == text.size() || is_space(text[end]), ArgumentError, "space: {}: expected a space before '{}'",
                  printable(name), printable(text.substr(end)));
    CONCORD_CHECK(std::ranges::find(space.parameters_, name, &Parameter::name) == space.parameters_.end(),
                  ArgumentError, "space: {} is there twice", printable(name));
    space.parameters_.push_back(ParameterText(name, text.substr(equal + 1, end - equal - 1)).read());
    at = end;
  }
  CONCORD_CHECK(!space.parameters_.empty(), ArgumentError,
                "space: there is no parameter; expected NAME=values, such as lr=log(1e-4,1e-1)");
  return space;
}

Settings Space::draw(std::uint64_t seed, std::int64_t trial) const {
  Settings settings;
  for (const Parameter& parameter : parameters_) {
    const double unit = unit_of(stream_of("draw", seed, trial, parameter.name), 0);
    settings.push_back({parameter.name, parameter.at(unit)});
  }
  return settings;
}

std::int64_t Space::combinations() const {
  std::int64_t all = 1;
  for (const Parameter& parameter : parameters_) {
    const std::optional<std::int64_t> count = parameter.count();
    CONCORD_CHECK(count, ArgumentError, "space: a grid needs the number of values of the range {}: {}={}{},{},5{}",
                  parameter.name, parameter.name, parameter.kind == Parameter::Kind::log ? "log(" : "[", parameter.low,
                  parameter.high, parameter.kind == Parameter::Kind::log ? ")" : "]");
    CONCORD_CHECK(*count <= kMostCombinations / all, ArgumentError, "space: the grid has more than {} combinations",
                  kMostCombinations);
    all *= *count;
  }
  return all;
}

Settings Space::combination(std::int64_t i) const {
  Settings settings(parameters_.size());
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    const std::int64_t count = parameters_[p].count().value();
    settings[p] = {parameters_[p].name, parameters_[p].value(i % count)};
    i /= count;
  }
  return settings;
}

}  // namespace concord::search
