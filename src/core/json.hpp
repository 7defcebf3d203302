// JSON that comes from outside: files, other processes, environment variables. Everything of the kind is read through
// read_json, so that no text ends in another error than FormatError, or in none at all.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "concord/core/error.hpp"

namespace concord {

/// What a text may be at most. Texts of our own stay far below.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 16;  // arrays and objects within each other
};

/// What is wrong with a text that parse_json does not take.
class JsonError : public FormatError {
 public:
  JsonError(std::string_view subject, std::string problem, std::size_t byte);
  /// "is not JSON from here on"
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Where in the text; 0 where the reader does not tell.
  [[nodiscard]] std::size_t byte() const { return byte_; }

 private:
  std::string problem_;
  std::size_t byte_;
};

/// The value of a text. Throws JsonError, whose message begins with `subject` ("model.safetensors: header"): for what
/// is no JSON or no UTF-8, for a number beyond double, for an object that has a key twice, and beyond the limits.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, std::string_view subject, const JsonLimits& limits = {});

/// Of a value that is missing or has another type than was asked for.
[[noreturn]] void throw_unexpected_json(const nlohmann::json::exception& error, std::string_view subject);

/// read(value of the text). What the JSON library throws in `read`, of a value that is missing or of another type,
/// becomes a FormatError as well.
template <class Read>
auto read_json(std::string_view text, std::string_view subject, Read&& read) {
  const nlohmann::json json = parse_json(text, subject);
  try {
    return std::forward<Read>(read)(json);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_json(error, subject);
  }
}

/// The fields of an object of such a text. What is missing or of another type is a FormatError with `subject` and the
/// field's name, and so is a number that the type does not hold.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string subject);

  [[nodiscard]] bool has(const char* name) const { return object_.contains(name); }
  [[nodiscard]] const nlohmann::json& at(const char* name) const;
  template <class T>
  [[nodiscard]] T get(const char* name) const {
    const nlohmann::json& value = at(name);
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      if (!is_in_range<T>(value)) refuse(name, "not an integer in the range of its type");
    }
    try {
      return value.get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(name, "of another type");
    }
  }
  template <class T>
  void read(const char* name, T& value) const {
    value = get<T>(name);
  }

 private:
  template <class T>
  static bool is_in_range(const nlohmann::json& number) {
    if (number.is_number_unsigned()) return std::in_range<T>(number.get<std::uint64_t>());
    return number.is_number_integer() && std::in_range<T>(number.get<std::int64_t>());
  }
  [[noreturn]] void refuse(const char* name, std::string_view what) const;

  const nlohmann::json& object_;
  std::string subject_;
};

}  // namespace concord
