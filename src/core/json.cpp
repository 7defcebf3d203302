// The parser reports every event, so it stops at a limit before it builds what is beyond the limit.
#include "concord/core/json.hpp"

#include <set>
#include <string>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

using Json = nlohmann::json;

/// The library's message without its own names: "[json.exception.type_error.302] type must be …" → "type must be …".
std::string words_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

JsonError::JsonError(std::string_view subject, std::string problem, std::size_t byte)
    : FormatError(byte > 0 ? fmt::format("{}, byte {}: {}", subject, byte, problem)
                           : fmt::format("{}: {}", subject, problem)),
      problem_(std::move(problem)),
      byte_(byte) {}

nlohmann::json parse_json(std::string_view text, std::string_view subject, const JsonLimits& limits) {
  const auto fail = [&](std::string problem, std::size_t byte = 0) {
    throw JsonError(subject, std::move(problem), byte);
  };
  if (text.size() > limits.bytes) fail(fmt::format("{} bytes of JSON; the limit is {}", text.size(), limits.bytes));
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (begins && depth >= limits.depth)
      fail(fmt::format("is nested too deep: more than {} objects and arrays", limits.depth));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) fail(fmt::format("\"{}\" occurs twice", key));
    }
    return true;
  };
  const NeutralNumbers neutral;
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw JsonError(subject, "is not JSON from here on", error.byte > 0 ? error.byte - 1 : 0);
  } catch (const Json::exception& error) {
    throw JsonError(subject, words_of(error), 0);
  }
}

JsonFields::JsonFields(const nlohmann::json& object, std::string subject)
    : object_(object), subject_(std::move(subject)) {
  CONCORD_CHECK(object_.is_object(), FormatError, "{}: is not a JSON object", subject_);
}

const nlohmann::json& JsonFields::at(const char* name) const {
  const auto found = object_.find(name);
  CONCORD_CHECK(found != object_.end(), FormatError, "{}: has no \"{}\"", subject_, name);
  return *found;
}

void JsonFields::refuse(const char* name, std::string_view what) const {
  constexpr std::size_t kShown = 40;
  std::string value = object_.at(name).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.size() > kShown) value = value.substr(0, kShown) + "...";
  throw FormatError(fmt::format("{}: \"{}\" is {}, {}", subject_, name, value, what));
}

void throw_unexpected_json(const nlohmann::json::exception& error, std::string_view subject) {
  throw FormatError(fmt::format("{}: a value is missing or of another type: {}", subject, words_of(error)));
}

}  // namespace concord
