// The encoding of a table as JSON, strictly.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/data/table/csv.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kCsvFormat = "concord.table";
constexpr int kCsvVersion = 1;

void check_csv_members(const nlohmann::json& object, const std::string& subject,
                       std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    CONCORD_CHECK(std::ranges::find(known, name) != known.end(), FormatError, "{}: \"{}\" is unknown", subject, name);
  }
}

std::vector<std::string> distinct_csv_texts(const JsonFields& fields, const char* name, const std::string& subject) {
  auto texts = fields.get<std::vector<std::string>>(name);
  const std::set<std::string_view> seen(texts.begin(), texts.end());
  CONCORD_CHECK(seen.size() == texts.size(), FormatError, "{}: \"{}\" has a text twice", subject, name);
  return texts;
}

CsvEncoding::Input csv_input_of(const nlohmann::json& json, const std::string& subject) {
  const JsonFields fields(json, subject);
  CsvEncoding::Input input;
  fields.read("name", input.name);
  fields.read("missing", input.has_missing);
  const auto kind = fields.get<std::string>("kind");
  CONCORD_CHECK(kind == "number" || kind == "category", FormatError, "{}: the kind \"{}\" is unknown", subject, kind);
  input.is_category = kind == "category";
  if (input.is_category) {
    check_csv_members(json, subject, {"name", "missing", "kind", "values"});
    input.values = distinct_csv_texts(fields, "values", subject);
    CONCORD_CHECK(!input.values.empty() && std::ranges::is_sorted(input.values), FormatError,
                  "{}: \"values\" has to ascend, and to have one value at least", subject);
  } else {
    check_csv_members(json, subject, {"name", "missing", "kind", "mean", "deviation"});
    fields.read("mean", input.mean);
    fields.read("deviation", input.deviation);
    CONCORD_CHECK(input.deviation > 0, FormatError, "{}: the deviation {} is not positive", subject, input.deviation);
  }
  return input;
}

CsvEncoding::Label csv_label_of(const nlohmann::json& json, const std::string& subject) {
  const JsonFields fields(json, subject);
  CsvEncoding::Label label;
  fields.read("name", label.name);
  const auto kind = fields.get<std::string>("kind");
  CONCORD_CHECK(kind == "target" || kind == "classes", FormatError, "{}: the kind \"{}\" is unknown", subject, kind);
  if (kind == "target") {
    check_csv_members(json, subject, {"name", "kind", "mean", "deviation"});
    if (!json.contains("deviation")) return label;  // of an earlier file: its network gives the target itself
    fields.read("mean", label.mean);
    fields.read("deviation", label.deviation);
    CONCORD_CHECK(label.deviation > 0, FormatError, "{}: the deviation {} is not positive", subject, label.deviation);
    return label;
  }
  check_csv_members(json, subject, {"name", "kind", "classes", "text"});
  label.classes = distinct_csv_texts(fields, "classes", subject);
  CONCORD_CHECK(!label.classes.empty(), FormatError, "{}: \"classes\" is empty", subject);
  if (json.contains("text")) {
    fields.read("text", label.is_text);
  } else {  // of an earlier file
    label.is_text = !std::ranges::all_of(label.classes, is_csv_class_number);
  }
  return label;
}

}  // namespace

std::string to_json(const CsvEncoding& encoding) {
  using Json = nlohmann::json;
  Json inputs = Json::array(), labels = Json::array();
  for (const CsvEncoding::Input& input : encoding.inputs) {
    Json json{
        {"name", input.name}, {"missing", input.has_missing}, {"kind", input.is_category ? "category" : "number"}};
    if (input.is_category) {
      json["values"] = input.values;
    } else {
      json["mean"] = input.mean;
      json["deviation"] = input.deviation;
    }
    inputs.push_back(std::move(json));
  }
  for (const CsvEncoding::Label& label : encoding.labels) {
    Json json{{"name", label.name}, {"kind", label.classes.empty() ? "target" : "classes"}};
    if (label.classes.empty()) {
      json["mean"] = label.mean;
      json["deviation"] = label.deviation;
    } else {
      json["classes"] = label.classes;
      json["text"] = label.is_text;
    }
    labels.push_back(std::move(json));
  }
  return Json{{"format", kCsvFormat}, {"version", kCsvVersion}, {"inputs", inputs}, {"labels", labels}}.dump();
}

CsvEncoding csv_encoding_from_json(std::string_view text, std::string_view subject) {
  return read_json(text, subject, [&](const nlohmann::json& json) {
    const std::string whole(subject);
    const JsonFields fields(json, whole);
    check_csv_members(json, whole, {"format", "version", "inputs", "labels"});
    const auto format = fields.get<std::string>("format");
    const int version = fields.get<int>("version");
    CONCORD_CHECK(format == kCsvFormat && version == kCsvVersion, FormatError,
                  "{}: the format \"{}\", version {}, is not \"{}\", version {}", whole, format, version, kCsvFormat,
                  kCsvVersion);
    CsvEncoding encoding;
    std::set<std::string> names;
    const auto read_all = [&](const char* name, auto read, auto& to) {
      const nlohmann::json& list = fields.at(name);
      CONCORD_CHECK(list.is_array(), FormatError, "{}: \"{}\" is not an array", whole, name);
      for (std::size_t i = 0; i < list.size(); ++i) {
        to.push_back(read(list[i], fmt::format("{}: {} {}", whole, name, i)));
        CONCORD_CHECK(names.insert(to.back().name).second, FormatError, "{}: the name \"{}\" occurs twice", whole,
                      to.back().name);
      }
    };
    read_all("inputs", csv_input_of, encoding.inputs);
    read_all("labels", csv_label_of, encoding.labels);
    CONCORD_CHECK(!encoding.inputs.empty(), FormatError, "{}: \"inputs\" is empty", whole);
    return encoding;
  });
}

}  // namespace concord::data
