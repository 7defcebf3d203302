// Names of classes in a text.
#include "concord/data/records/class_file.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {

std::string class_file_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    CONCORD_CHECK(!name.empty() && name.find_first_of("\r\n") == std::string::npos, ArgumentError,
                  "the name of the class \"{}\" cannot be a line of {}: it {}", printable(name), kClassFile,
                  name.empty() ? "is empty" : "has a line end");
    text += name + "\n";
  }
  return text;
}

std::vector<std::string> read_class_file(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kClassFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::string text = read_file(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::vector<std::string> names = concord::split(text, '\n');
  std::set<std::string_view> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].ends_with('\r')) names[i].pop_back();
    const std::string place = fmt::format("{}, line {}", printable(path.string()), i + 1);
    CONCORD_CHECK(!names[i].empty(), FormatError, "{}: the name of a class is empty", place);
    CONCORD_CHECK(is_utf8(names[i]), FormatError, "{}: \"{}\" is no UTF-8", place, printable(names[i]));
  }
  for (const std::string& name : names) {
    CONCORD_CHECK(known.insert(name).second, FormatError, "{}: the class \"{}\" is there twice",
                  printable(path.string()), printable(name));
  }
  return names;
}

std::vector<std::string> class_folders(const std::vector<std::string>& names) {
  std::set<std::string> known(names.begin(), names.end());
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    std::string folder = name;
    for (char& c : folder) {
      if (c == '/' || (c >= 0 && c < ' ') || c == '\x7F') c = '_';
    }
    if (folder.starts_with('.')) folder[0] = '_';
    if (folder != name) {
      const std::string first = folder;
      for (int number = 2; !known.insert(folder).second; ++number) folder = fmt::format("{}_{}", first, number);
    }
    folders.push_back(std::move(folder));
  }
  return folders;
}

void to_wanted_classes(Column& labels, const std::vector<std::string>& stored, const std::vector<std::string>& wanted,
                       const std::string& source) {
  if (stored == wanted) {
    labels.classes = static_cast<int>(wanted.size());
    return;
  }
  const ClassTable table(wanted);
  std::vector<std::int32_t> values;
  for (const std::int32_t label : labels.values.values<std::int32_t>()) {
    const std::string& name = stored[static_cast<std::size_t>(label)];
    const auto found = table.find(name);
    CONCORD_CHECK(found.has_value(), ArgumentError, "{}: \"{}\" is not one of the classes of the model: {}", source,
                  printable(name), some_of(wanted));
    values.push_back(*found);
  }
  labels = class_column(values, static_cast<int>(wanted.size()));
}

std::vector<std::string> name_classes(Column& labels, const std::vector<std::string>& stored,
                                      const std::vector<std::string>& wanted, const std::string& source) {
  if (static_cast<std::size_t>(labels.classes) > stored.size()) {
    log(LogLevel::warning, fmt::format("{}: {} is not used: it has {} names, but the labels are up to {}", source,
                                       kClassFile, stored.size(), labels.classes - 1));
    CONCORD_CHECK(wanted.empty() || static_cast<std::size_t>(labels.classes) <= wanted.size(), ArgumentError,
                  "{}: there is a label {}, which is not one of the {} classes of the model", source,
                  labels.classes - 1, wanted.size());
    if (!wanted.empty()) labels.classes = static_cast<int>(wanted.size());
    return wanted;
  }
  to_wanted_classes(labels, stored, wanted.empty() ? stored : wanted, source);
  return wanted.empty() ? stored : wanted;
}

void to_numbered_classes(Records& records, const std::vector<std::string>& stored, int classes) {
  if (classes == 0 || records.class_names.empty() || records.has_mask()) return;
  std::map<std::int32_t, std::int32_t> labels;  // by number
  std::vector<std::int32_t> values;
  for (const std::int32_t label : records.labels[0].values.values<std::int32_t>()) {
    const std::string& name = records.class_names[static_cast<std::size_t>(label)];
    const auto number = records.class_names == stored ? label : number_in_text<std::int32_t>(name).value_or(-1);
    CONCORD_CHECK(number >= 0 && number < classes, ArgumentError,
                  "{}: the class \"{}\" is unknown: the training had the numbers 0 to {} as classes, without names. "
                  "Name the classes by these numbers, or write their names into {}, one a line from number 0 on",
                  records.name, printable(name), classes - 1, kClassFile);
    CONCORD_CHECK(labels.emplace(number, label).first->second == label, ArgumentError,
                  "{}: two classes are the number {}, such as \"{}\"", records.name, number, printable(name));
    values.push_back(number);
  }
  records.labels[0] = class_column(values, classes);
  records.class_names.clear();
}

}  // namespace concord::data
