// JSON from outside: files, other processes, environment variables. All of it is read through read_json, so that every
// bad text ends in a FormatError and in no other error.
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

/// Limits on a text. Our own texts stay far below them.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 16;  // arrays and objects within each other
};

/// The reason why parse_json refuses a text.
class JsonError : public FormatError {
 public:
  JsonError(std::string_view subject, std::string problem, std::size_t byte);
  /// "is not JSON from here on"
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// The position in the text; 0 if the reader does not report it.
  [[nodiscard]] std::size_t byte() const { return byte_; }

 private:
  std::string problem_;
  std::size_t byte_;
};

/// Parses a text. Throws JsonError, whose message begins with `subject` ("model.safetensors: header"), if the text is
/// not JSON or not UTF-8, has a number beyond double or an object with a duplicate key, or exceeds the limits.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, std::string_view subject, const JsonLimits& limits = {});

/// Throws the error for a value that is missing or has the wrong type.
[[noreturn]] void throw_unexpected_json(const nlohmann::json::exception& error, std::string_view subject);

/// Returns read(value of the text). If `read` throws an error of the JSON library, for a missing value or a wrong type,
/// it becomes a FormatError too.
template <class Read>
auto read_json(std::string_view text, std::string_view subject, Read&& read) {
  const nlohmann::json json = parse_json(text, subject);
  try {
    return std::forward<Read>(read)(json);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_json(error, subject);
  }
}

/// The fields of an object in such a text. A field that is missing, has the wrong type or does not fit the type is a
/// FormatError with `subject` and the field's name.
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
