// Validators: each gives what is wrong with a text as a sentence, which CLI11 puts the name of the option before.
#include "concord/cli/validator.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "concord/cli/data_spec.hpp"
#include "concord/core/error.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/device/selection.hpp"

namespace concord::cli {
namespace {

CLI::Validator number(const char* range, bool (*inside)(double), const char* help) {
  const auto refusal = [range, inside](const std::string& text) {
    const auto value = number_in_text<double>(text);
    const bool is_inside = value && std::isfinite(*value) && inside(*value);
    return is_inside ? std::string() : fmt::format("{} is not a finite number {}", text, range);
  };
  return {refusal, help, {}};
}

/// Refuses what `parse` throws ArgumentError for.
CLI::Validator parsed(void (*parse)(const std::string& text)) {
  const auto refusal = [parse](const std::string& text) {
    try {
      parse(text);
      return std::string();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
  };
  return {refusal, "", {}};
}

std::string refusal_of_selector(const std::string& text) {
  const std::string error = selector_error(text);
  return error.empty() ? error : error + ". `concord devices` lists those of this machine";
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string help = fmt::format("{{{}}}", fmt::join(words, ","));
  const auto refusal = [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    std::optional<std::string> meant = nearest_name(text, words);
    const auto begins = [&](const std::string& word) { return word.starts_with(text); };
    if (!text.empty() && std::ranges::count_if(words, begins) == 1) meant = *std::ranges::find_if(words, begins);
    return fmt::format("'{}' is none of {}{}", printable(text), fmt::join(words, ", "),
                       meant ? fmt::format(". Did you mean {}?", *meant) : "");
  };
  return {refusal, help, {}};
}

CLI::Validator positive() {
  return number(
      "above 0", [](double x) { return x > 0; }, "POSITIVE");
}

CLI::Validator not_negative() {
  return number(
      "of 0 or more", [](double x) { return x >= 0; }, "NONNEGATIVE");
}

CLI::Validator from_0_to_1() {
  return number(
      "from 0 to 1", [](double x) { return x >= 0 && x <= 1; }, "0..1");
}

CLI::Validator from_0_below_1() {
  return number(
      "from 0 to below 1", [](double x) { return x >= 0 && x < 1; }, "0..<1");
}

CLI::Validator between_0_and_1() {
  return number(
      "above 0 and below 1", [](double x) { return x > 0 && x < 1; }, "0<..<1");
}

CLI::Validator whole(std::uint64_t first, std::uint64_t last) {
  const auto refusal = [first, last](const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // 010 would be read as an octal number.
    const bool read = error == std::errc{} && fmt::format("{}", value) == text;
    if (read && value >= first && value <= last) return std::string();
    return fmt::format("{} is not an integer from {} to {}", text, first, last);
  };
  return {refusal, first > 0 ? "COUNT" : "WHOLE", {}};
}

CLI::Validator count() { return whole(1, std::numeric_limits<std::int32_t>::max()); }

CLI::Validator not_empty() {
  const auto refusal = [](const std::string& text) {
    return text.empty() ? std::string("it is empty; leave the option out for the default") : std::string();
  };
  return {refusal, "", {}};
}

CLI::Validator file_name() {
  const auto refusal = [](const std::string& text) {
    return text.empty() ? std::string("the name of a file is empty") : std::string();
  };
  return {refusal, "", {}};
}

CLI::Validator data_name() {
  return parsed([](const std::string& text) { static_cast<void>(DataSpec::parse(text)); });
}

CLI::Validator augmentation() {
  return parsed([](const std::string& text) { static_cast<void>(data::parse_augment(text)); });
}

CLI::Validator weights_of_classes() {
  const auto refusal = [](const std::string& text) {
    if (text == "balanced") return std::string();
    float sum = 0;
    for (const std::string& word : split(text, ',')) {
      const auto value = number_in_text<float>(word);
      if (!value || !std::isfinite(*value) || *value < 0) {
        return fmt::format("'{}' in {} is not a finite number of 0 or more; use numbers such as 1,2.5,1 or balanced",
                           word, text);
      }
      sum += *value;
    }
    return sum > 0 ? std::string() : fmt::format("in {} no class counts; one weight has to be above 0", text);
  };
  return {refusal, "WEIGHTS", {}};
}

CLI::Validator auto_or_count() {
  static constexpr std::uint64_t kMostThreads = 1024;
  const CLI::Validator number = whole(1, kMostThreads);
  const auto refusal = [number](const std::string& text) {
    if (text == "auto") return std::string();
    std::string given = text;
    return number(given).empty() ? std::string()
                                 : fmt::format("{} is neither auto nor an integer from 1 to {}", text, kMostThreads);
  };
  return {refusal, "COUNT", {}};
}

CLI::Validator device_selector() {
  const auto refusal = [](const std::string& text) {
    return text.empty() ? std::string("the name of the device is empty; leave the option out for the default")
                        : refusal_of_selector(text);
  };
  return {refusal, "", {}};
}

CLI::Validator device_selectors(bool may_be_all) {
  const auto refusal = [may_be_all](const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      if (comma == at) return fmt::format("'{}' contains an empty device name", text);
      const std::string selector = text.substr(at, comma - at);
      std::string wrong = may_be_all && selector == "all" ? std::string() : refusal_of_selector(selector);
      if (!wrong.empty()) return wrong;
      at = comma + 1;
    }
    return std::string();
  };
  return {refusal, "", {}};
}

}  // namespace concord::cli
