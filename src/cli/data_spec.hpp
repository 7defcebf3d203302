// DataSpec: --data as text. "KIND", "KIND:PATH" or "KIND:PATH,KEY=VALUE…".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace concord::cli {

/// The values of --data, for --help.
inline constexpr const char* kDataHelp =
    "folder:DIR, lmdb:DIR, tar:PATTERN, csv:FILE,label=COLUMN, npy:X,Y, npz:FILE, audio:LIST, text:FILE, "
    "fashion-mnist, mnist, "
    "emnist-balanced, cifar10, cifar100, random; NAME:DIRECTORY for files in another folder; "
    "docs/guide/your-own-data.md "
    "lists what may follow with commas";

struct DataSpec {
  std::string text;  // as given
  std::string kind, path;
  std::map<std::string, std::string> options;

  /// The path ends at the first comma that a KEY= follows. Throws ArgumentError for an unknown kind, a path that is
  /// missing or may not be there, an option that the kind does not have, or one given twice.
  [[nodiscard]] static DataSpec parse(std::string_view text);
  /// Whether the text begins with the name of a kind.
  [[nodiscard]] static bool names_data(std::string_view text);
  /// The value of an option; empty if it was not given.
  [[nodiscard]] std::string option(const std::string& key) const;
  /// Files of images: folder, lmdb or tar.
  [[nodiscard]] bool is_images() const;
  /// A set of the user's own, whose classes count, not those of the published network.
  [[nodiscard]] bool is_own() const;
};

}  // namespace concord::cli
