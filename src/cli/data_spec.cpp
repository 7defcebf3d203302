// The grammar of --data.
#include "concord/cli/data_spec.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

enum class PathRule { optional, needed, none };

struct Kind {
  std::string_view name;
  PathRule path;
  std::vector<std::string_view> options;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"folder", PathRule::needed, {"list", "masks", "classes", "val", "test"}},
      {"lmdb", PathRule::needed, {"val", "test"}},
      {"tar", PathRule::needed, {"classes", "val", "test"}},
      {"csv",
       PathRule::needed,
       {"label", "target", "categories", "drop", "most_categories", "separator", "decimal", "header", "val", "test"}},
      {"npy", PathRule::needed, {"test"}},
      {"npz", PathRule::needed, {"x", "y"}},
      {"audio", PathRule::needed, {"rate", "seconds", "mels", "normalise", "transcripts", "alphabet", "val", "test"}},
      {"text", PathRule::needed, {"vocab", "merges"}},
      {"fashion-mnist", PathRule::optional, {}},
      {"mnist", PathRule::optional, {}},
      {"cifar10", PathRule::optional, {}},
      {"cifar100", PathRule::optional, {}},
      {"random", PathRule::none, {"samples"}},
  };
  return all;
}

/// What a path is probably meant as: "a table: csv:t.csv".
std::string likely_data(std::string_view path) {
  const std::string small = lower(path);
  const auto ends = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return small.ends_with(ending); });
  };
  if (std::filesystem::is_directory(path)) return fmt::format("a folder of images: folder:{}", path);
  if (ends({".csv", ".tsv", ".csv.gz", ".tsv.gz"})) {
    return fmt::format("a table: csv:{0}, to train with the column that is to be predicted: csv:{0},label=COLUMN",
                       path);
  }
  if (ends({".npz"})) return fmt::format("arrays of numpy: npz:{}", path);
  if (ends({".npy"})) return "arrays of numpy: npy:X.npy,Y.npy";
  if (ends({".tar"})) return fmt::format("images in a tar file: tar:{}", path);
  if (ends({".txt"})) return fmt::format("a text: text:{0}; for a list of recordings: audio:{0}", path);
  return fmt::format("the folder of an image: folder:DIR; for a table: csv:{0}; for a text: text:{0}", path);
}

/// Null if there is none of this name.
const Kind* find_kind(std::string_view name) {
  static const Kind emnist{"emnist", PathRule::optional, {}};
  if (name.starts_with("emnist-")) return &emnist;
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  return found == kinds().end() ? nullptr : &*found;
}

const Kind& kind_of(std::string_view name) {
  if (const Kind* const kind = find_kind(name)) return *kind;
  CONCORD_CHECK(!std::filesystem::exists(name), ArgumentError, "'{}' is no kind of data; for {}", name,
                likely_data(name));
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  const std::optional<std::string> nearest = nearest_name(name, names);
  throw ArgumentError(fmt::format("unknown data set '{}'{} known: {}", name,
                                  nearest ? fmt::format("; did you mean {}?", *nearest) : ";", kDataHelp));
}

/// A shell expands ~ only where a word begins. Here it stands for the home folder at the beginning, and behind what
/// separates the files of this kind.
std::string expanded(std::string_view kind, std::string_view paths) {
  const std::optional<std::string> home = environment("HOME");
  const char separator = kind == "npy" ? ',' : kind == "text" ? '+' : '\0';
  std::string all;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const bool begins = i == 0 || (separator != '\0' && paths[i - 1] == separator);
    if (home && begins && paths.substr(i).starts_with("~/")) {
      all += *home;
    } else {
      all += paths[i];
    }
  }
  return all;
}

/// Where ",KEY=" begins from `from` on; npos: nowhere.
std::size_t next_option(std::string_view text, std::size_t from) {
  for (std::size_t comma = text.find(',', from); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::size_t sign = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", comma + 1);
    if (sign != std::string_view::npos && sign > comma + 1 && text[sign] == '=') return comma;
  }
  return std::string_view::npos;
}

}  // namespace

DataSpec DataSpec::parse(std::string_view text) {
  CONCORD_CHECK(!text.empty(), ArgumentError, "the name of the data set is empty");
  DataSpec spec{std::string(text), {}, {}, {}};
  std::size_t comma = next_option(text, 0);
  const std::string_view head = text.substr(0, comma);
  const std::size_t colon = head.find(':');
  spec.kind = head.substr(0, colon);
  if (colon != std::string_view::npos) spec.path = expanded(spec.kind, head.substr(colon + 1));
  const Kind& kind = kind_of(spec.kind);
  CONCORD_CHECK(colon == std::string_view::npos || kind.path != PathRule::none, ArgumentError,
                "{} data has no folder; use only the name {}", kind.name, kind.name);
  const bool has_path = !spec.path.empty();
  CONCORD_CHECK(has_path || kind.path != PathRule::needed, ArgumentError, "{}: needs the name of a {} after the colon",
                kind.name, kind.name == "folder" ? "folder" : "file");
  CONCORD_CHECK(has_path || colon == std::string_view::npos, ArgumentError,
                "{} needs the name of a folder after the colon; leave the colon out for the default folders", text);
  while (comma != std::string_view::npos) {
    const std::size_t next = next_option(text, comma + 1);
    const std::string_view pair = text.substr(comma + 1, next == std::string_view::npos ? next : next - comma - 1);
    const std::size_t sign = pair.find('=');
    const std::string key(pair.substr(0, sign));
    CONCORD_CHECK(std::ranges::find(kind.options, key) != kind.options.end(), ArgumentError,
                  "{} data has no option '{}'; there are: {}", spec.kind, key,
                  kind.options.empty() ? "none" : fmt::format("{}", fmt::join(kind.options, ", ")));
    CONCORD_CHECK(sign + 1 < pair.size(), ArgumentError, "{}: '{}' has no value", spec.kind, key);
    CONCORD_CHECK(spec.options.emplace(key, expanded(spec.kind, pair.substr(sign + 1))).second, ArgumentError,
                  "{}: '{}' is given twice", spec.kind, key);
    comma = next;
  }
  return spec;
}

bool DataSpec::names_data(std::string_view text) {
  return find_kind(text.substr(0, text.find_first_of(":,"))) != nullptr;
}

std::string DataSpec::option(const std::string& key) const {
  const auto found = options.find(key);
  return found == options.end() ? std::string() : found->second;
}

bool DataSpec::is_images() const { return kind == "folder" || kind == "lmdb" || kind == "tar"; }

bool DataSpec::is_own() const {
  return is_images() || kind == "csv" || kind == "npy" || kind == "npz" || kind == "audio";
}

}  // namespace concord::cli
