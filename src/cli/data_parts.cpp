// Collections, folders and the options of tables.
#include "concord/cli/data_parts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/mask.hpp"

namespace concord::cli {
namespace {

/// The first of these folders that there is.
std::filesystem::path folder_in(const std::filesystem::path& directory, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::filesystem::is_directory(directory / name)) return directory / name;
  }
  return {};
}

}  // namespace

Dataset read_collection(const DataSpec& spec, std::string_view split) {
  if (spec.kind == "fashion-mnist") return data::fashion_mnist(split, spec.path);
  if (spec.kind == "mnist") return data::mnist(split, spec.path);
  if (spec.kind == "cifar10") return data::cifar10(split, spec.path);
  if (spec.kind == "cifar100") return data::cifar100(split, spec.path);
  return data::emnist(spec.kind.substr(std::string_view("emnist-").size()), split, spec.path);
}

std::filesystem::path path_of_part(const DataSpec& spec, std::string_view part) {
  if (part == "validation" && !spec.option("val").empty()) return spec.option("val");
  if (part == "test" && !spec.option("test").empty()) return spec.option("test");
  if (spec.kind != "folder" || !spec.option("list").empty()) return part == "train" ? spec.path : "";
  const std::filesystem::path train = folder_in(spec.path, {"train", "training"});
  if (train.empty()) return part == "train" ? spec.path : "";
  if (part == "train") return train;
  return part == "test" ? folder_in(spec.path, {"test"}) : folder_in(spec.path, {"val", "valid", "validation"});
}

void check_encoding_fits(const data::CsvOptions& given, const data::CsvEncoding& fitted) {
  const auto name = [](const auto& column) { return column.name; };
  std::vector<std::string> known;
  std::ranges::transform(fitted.labels, std::back_inserter(known), name);
  for (const auto* const list : {&given.labels, &given.targets}) {
    for (const std::string& label : *list) {
      CONCORD_CHECK(std::ranges::find(known, label) != known.end(), ArgumentError,
                    "csv: {}={} is none of what the weights were trained to predict: {}; leave it out",
                    list == &given.labels ? "label" : "target", printable(label), fmt::join(known, ", "));
    }
  }
  for (const std::string& dropped : given.drop) {
    CONCORD_CHECK(std::ranges::find(fitted.inputs, dropped, name) == fitted.inputs.end(), ArgumentError,
                  "csv: drop={}: the weights were trained with this column", printable(dropped));
  }
}

void check_labels(const Dataset& table, std::string_view file, const data::CsvEncoding& fitted) {
  if (table.labels.elements() > 0 || fitted.labels.empty()) return;
  std::vector<std::string> names;
  for (const data::CsvEncoding::Label& label : fitted.labels)
    names.push_back(fmt::format("'{}'", printable(label.name)));
  throw ArgumentError(
      names.size() == 1
          ? fmt::format("{} has no column {}, the label; only predict needs none", printable(file), names[0])
          : fmt::format("{} does not have all columns of labels: {}; only predict needs none", printable(file),
                        fmt::join(names, ", ")));
}

std::filesystem::path masks_of_part(const DataSpec& spec, std::string_view part) {
  const std::filesystem::path masks = spec.option("masks"), images = path_of_part(spec, part);
  if (masks.empty() || images.empty() || images == std::filesystem::path(spec.path)) return masks;
  const std::filesystem::path like = masks / images.filename();
  const bool is_inside = images.lexically_relative(spec.path) == images.filename();
  return is_inside && std::filesystem::is_directory(like) ? like : masks;
}

std::optional<int> classes_of_masks(const DataSpec& spec) {
  const std::string text = spec.option("classes");
  if (text.empty()) return std::nullopt;
  const std::optional<int> classes = number_in_text<int>(text);
  constexpr int kMost = data::kNoClass;  // of a byte, beside that of pixels without a class
  CONCORD_CHECK(classes && *classes >= 2 && *classes <= kMost, ArgumentError,
                "{}: classes={} is not a number from 2 to {}", spec.kind, text, kMost);
  return classes;
}

void require_masks(const DataSpec& spec, bool has_masks) {
  CONCORD_CHECK(has_masks || spec.option("classes").empty(), ArgumentError,
                "{}: classes= is the number of classes in masks, and there are no {}", spec.kind,
                spec.kind == "tar" ? "masks in the shards (1.seg.png or 1.mask.png beside 1.jpg)" : "masks=");
}

data::CsvOptions csv_options_of(const DataSpec& spec) {
  data::CsvOptions how;
  const auto list = [&](const char* key) {
    const std::string text = spec.option(key);
    return text.empty() ? std::vector<std::string>() : split(text, ',');
  };
  how.labels = list("label");
  how.targets = list("target");
  how.categories = list("categories");
  how.drop = list("drop");
  if (const std::string most = spec.option("most_categories"); !most.empty()) {
    const auto number = number_in_text<std::int64_t>(most);
    CONCORD_CHECK(number && *number >= 1 && *number <= data::kMostCategories, ArgumentError,
                  "csv: most_categories={} is no number from 1 to {}", most, data::kMostCategories);
    how.most_categories = *number;
  }
  const std::string separator = spec.option("separator"), header = spec.option("header");
  CONCORD_CHECK(separator.size() <= 1 || separator == "tab", ArgumentError,
                "csv: separator={} is neither one character nor tab", separator);
  if (!separator.empty()) how.separator = separator == "tab" ? '\t' : separator[0];
  const std::string decimal = spec.option("decimal");
  CONCORD_CHECK(decimal.empty() || decimal == "point" || decimal == "comma", ArgumentError,
                "csv: decimal={} is neither point nor comma", decimal);
  if (!decimal.empty()) how.decimal = decimal == "comma" ? ',' : '.';
  CONCORD_CHECK(header.empty() || header == "yes" || header == "no", ArgumentError,
                "csv: header={} is neither yes nor no", header);
  if (!header.empty()) how.header = header == "yes";
  return how;
}

}  // namespace concord::cli
