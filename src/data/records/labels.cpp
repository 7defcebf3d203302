// Columns and warnings that are the same for every way of storing samples.
#include "concord/data/records/labels.hpp"

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/left_out.hpp"

namespace concord::data {
namespace {

constexpr std::size_t kNamesInMessages = 8;

}  // namespace

void warn_of(const std::string& records, const LeftOut& files, std::string_view what) {
  if (files.count == 0) return;
  log(LogLevel::warning, fmt::format("{}: {} {}, such as {}", records, files.count, what, printable(files.first)));
}

ClassTable::ClassTable(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) indices_.emplace(names[i], static_cast<std::int32_t>(i));
}

std::optional<std::int32_t> ClassTable::find(std::string_view name) const {
  const auto found = indices_.find(name);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

void check_class_name(std::string_view name, std::string_view what) {
  CONCORD_CHECK(
      is_utf8(name), ArgumentError,
      "{} \"{}\" is not UTF-8; it names a class, and these names are saved with the weights as UTF-8: rename it", what,
      printable(name));
}

Column class_column(const std::vector<std::int32_t>& values, int classes) {
  Column column;
  column.values = Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
  column.classes = classes;
  return column;
}

Column target_column(const std::vector<float>& values) {
  Column column;
  column.values = Tensor::of<float>({static_cast<std::int64_t>(values.size()), 1}, values);
  return column;
}

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesInMessages); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kNamesInMessages) text += fmt::format(" and {} more", names.size() - kNamesInMessages);
  return text;
}

void warn_of_classes(const std::string& name, const Column& classes, const std::vector<std::string>& class_names) {
  const auto values = classes.values.values<std::int32_t>();
  std::vector<std::int32_t> present(values.begin(), values.end());
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  const auto label_of = [&](std::int32_t i) {
    const auto index = static_cast<std::size_t>(i);
    return index < class_names.size() ? class_names[index] : fmt::format("class {}", i);
  };
  if (classes.classes == 1) {
    log(LogLevel::warning, fmt::format("{}: there is one class only, {}", name, printable(label_of(0))));
    return;
  }
  const std::size_t absent = static_cast<std::size_t>(classes.classes) - present.size();
  if (absent == 0) return;
  std::vector<std::string> names;
  auto next = present.begin();
  for (std::int32_t i = 0; i < classes.classes && names.size() < kNamesInMessages; ++i) {
    if (next != present.end() && *next == i) {
      ++next;
    } else {
      names.push_back(label_of(i));
    }
  }
  const std::string more = absent > names.size() ? fmt::format(" and {} more", absent - names.size()) : "";
  log(LogLevel::warning,
      fmt::format("{}: {} of {} classes have no sample: {}{}", name, absent, classes.classes, some_of(names), more));
}

void check_samples(const std::string& name, std::size_t samples) {
  CONCORD_CHECK(samples > 0, ArgumentError, "{} has no sample", name);
  CONCORD_CHECK(samples <= std::numeric_limits<std::int32_t>::max(), ArgumentError,
                "{} has {} samples; the limit is 2^31 - 1", name, samples);
}

}  // namespace concord::data
