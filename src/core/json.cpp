// The parser reports every event, so it stops at a limit before it builds what is beyond the limit. The value is built
// here: the library's parser with a callback scans an object again for each object in it.
#include "concord/core/json.hpp"

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

/// Builds a value of the parser's events. Throws JsonError at nesting beyond the limit and at a duplicate key, and the
/// library's errors.
class Builder {
 public:
  Builder(std::string_view subject, int depth) : subject_(subject), depth_(depth) {}

  bool null() { return place(nullptr); }
  bool boolean(bool value) { return place(value); }
  bool number_integer(Json::number_integer_t value) { return place(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return place(value); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) { return place(value); }
  bool string(std::string& value) { return place(std::move(value)); }
  bool binary(Json::binary_t& value) { return place(std::move(value)); }
  bool start_object(std::size_t /*count*/) { return open(Json::value_t::object); }
  bool start_array(std::size_t /*count*/) { return open(Json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    const auto [member, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    if (!is_new) throw JsonError(subject_, fmt::format("\"{}\" occurs twice", name), 0);
    member_ = &member->second;
    return true;
  }
  template <class Error>
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const Error& error) {
    throw error;
  }

  Json result = {};

 private:
  bool place(Json value) {
    put(std::move(value));
    return true;
  }

  Json& put(Json&& value) {
    if (open_.empty()) return result = std::move(value);
    if (open_.back()->is_array()) return open_.back()->emplace_back(std::move(value));
    return *member_ = std::move(value);
  }

  bool open(Json::value_t kind) {
    if (open_.size() >= static_cast<std::size_t>(depth_)) {
      throw JsonError(subject_, fmt::format("is nested too deep: more than {} objects and arrays", depth_), 0);
    }
    open_.push_back(&put(Json(kind)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string_view subject_;
  const int depth_;
  std::vector<Json*> open_;  // objects and arrays; each is the last of the one before it
  Json* member_ = nullptr;   // of the key that was read last
};

}  // namespace

JsonError::JsonError(std::string_view subject, std::string problem, std::size_t byte)
    : FormatError(byte > 0 ? fmt::format("{}, byte {}: {}", subject, byte, problem)
                           : fmt::format("{}: {}", subject, problem)),
      problem_(std::move(problem)),
      byte_(byte) {}

nlohmann::json parse_json(std::string_view text, std::string_view subject, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw JsonError(subject, fmt::format("{} bytes of JSON; the limit is {}", text.size(), limits.bytes), 0);
  }
  const NeutralNumbers neutral;
  try {
    Builder builder(subject, limits.depth);
    Json::sax_parse(text, &builder);
    return std::move(builder.result);
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
