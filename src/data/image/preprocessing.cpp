// Preprocessing as JSON:
//   {"version":1,"height":224,"width":224,"resize":256,"channels":3,"mean":[0.485,…],"deviation":[…],"classes":["cat",…]}
// A name that is no UTF-8, as a folder may have it, is {"hex":"ff00"}.
#include "concord/data/image/preprocessing.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

using PreprocessingJson = nlohmann::json;
constexpr int kPreprocessingVersion = 1;
constexpr double kLargestFloat = std::numeric_limits<float>::max();

/// "0.485" rather than 0.48500001430511475, where the short text is the same float.
double short_double(float value) {
  const std::optional<double> number = number_in_text<double>(fmt::format("{}", value));
  // The short text of the largest float is larger than it.
  const bool is_same = number && std::abs(*number) <= kLargestFloat && static_cast<float>(*number) == value;
  return is_same ? *number : static_cast<double>(value);
}

nlohmann::ordered_json numbers_to_json(const std::vector<float>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const float value : values) list.push_back(short_double(value));
  return list;
}

nlohmann::ordered_json name_to_json(const std::string& name) {
  if (is_utf8(name)) return name;
  std::string digits;
  for (const char c : name) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return {{"hex", digits}};
}

std::vector<float> numbers_from_json(const PreprocessingJson& list, const char* field, std::string_view subject) {
  CONCORD_CHECK(list.is_array() && list.size() <= 3, FormatError,
                "{}: the field \"{}\" is not a list of up to 3 numbers", subject, field);
  std::vector<float> values;
  for (const PreprocessingJson& item : list) {
    const double value = item.is_number() ? item.get<double>() : std::numeric_limits<double>::infinity();
    CONCORD_CHECK(std::abs(value) <= kLargestFloat, FormatError,
                  "{}: the field \"{}\" has a value that is no number of 32 bits", subject, field);
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::string name_from_json(const PreprocessingJson& item, std::size_t index, std::string_view subject) {
  if (item.is_string()) return item.get<std::string>();
  CONCORD_CHECK(item.is_object() && item.size() == 1 && item.contains("hex") && item["hex"].is_string(), FormatError,
                "{}: class {} has no name", subject, index);
  const std::string& digits = item["hex"].get_ref<const std::string&>();
  std::string name;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::optional<unsigned> byte = number_in_text<unsigned>(std::string_view(digits).substr(i, 2), 16);
    CONCORD_CHECK(byte && i + 1 < digits.size(), FormatError, "{}: the name of class {} is no hexadecimal number",
                  subject, index);
    name += static_cast<char>(static_cast<unsigned char>(*byte));
  }
  return name;
}

void check_fields(const PreprocessingJson& object, std::string_view subject) {
  constexpr auto kFields = std::to_array<std::string_view>(
      {"version", "height", "width", "resize", "channels", "mean", "deviation", "classes"});
  for (const auto& [name, value] : object.items()) {
    bool is_known = false;
    for (const std::string_view field : kFields) is_known = is_known || field == name;
    CONCORD_CHECK(is_known, FormatError, "{}: the field \"{}\" is not known", subject, printable(name));
  }
}

}  // namespace

std::string Preprocessing::to_json() const {
  nlohmann::ordered_json object;
  object["version"] = kPreprocessingVersion;
  object["height"] = height;
  object["width"] = width;
  object["resize"] = resize;
  object["channels"] = channels;
  object["mean"] = numbers_to_json(mean);
  object["deviation"] = numbers_to_json(deviation);
  object["classes"] = nlohmann::ordered_json::array();
  for (const std::string& name : class_names) object["classes"].push_back(name_to_json(name));
  return object.dump();
}

Preprocessing Preprocessing::from_json(std::string_view text, std::string_view subject) {
  Preprocessing result = read_json(text, subject, [&](const PreprocessingJson& object) {
    const JsonFields fields(object, std::string(subject));
    const int version = fields.get<int>("version");
    CONCORD_CHECK(version == kPreprocessingVersion, FormatError, "{}: it has version {}; this program reads version {}",
                  subject, version, kPreprocessingVersion);
    check_fields(object, subject);
    Preprocessing read;
    fields.read("height", read.height);
    fields.read("width", read.width);
    fields.read("resize", read.resize);
    fields.read("channels", read.channels);
    read.mean = numbers_from_json(fields.at("mean"), "mean", subject);
    read.deviation = numbers_from_json(fields.at("deviation"), "deviation", subject);
    const PreprocessingJson& names = fields.at("classes");
    CONCORD_CHECK(names.is_array(), FormatError, "{}: the field \"classes\" is not a list", subject);
    for (const PreprocessingJson& name : names) {
      read.class_names.push_back(name_from_json(name, read.class_names.size(), subject));
    }
    return read;
  });
  try {
    static_cast<void>(evaluation_of(result));
  } catch (const ArgumentError& error) {
    throw FormatError(fmt::format("{}: {}", subject, error.what()));
  }
  return result;
}

ImageTransform evaluation_of(const Preprocessing& preprocessing) {
  ImageTransform transform;
  transform.height = preprocessing.height, transform.width = preprocessing.width;
  transform.resize = preprocessing.resize, transform.channels = preprocessing.channels;
  transform.mean = preprocessing.mean, transform.deviation = preprocessing.deviation;
  transform.check();
  return transform;
}

Preprocessing preprocessing_of(const ImageTransform& transform, std::vector<std::string> class_names) {
  return {transform.height, transform.width,     transform.resize,      transform.channels,
          transform.mean,   transform.deviation, std::move(class_names)};
}

}  // namespace concord::data
