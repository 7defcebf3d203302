// InputFiles: the files that a command reads, none of which its outputs may replace.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concord::cli {

class InputFiles {
 public:
  /// A file, or a folder of samples. What is neither, such as the name of a network, does not count.
  InputFiles& add(const std::string& path);
  /// The files that --data names.
  InputFiles& add_data(const std::string& text);

  /// Throws ArgumentError if the file of an option would replace one of the inputs: one that is the same by name, by
  /// link or on disk, or a picture, a recording or a database in one of the folders.
  void require_kept(std::initializer_list<std::pair<std::string_view, std::string>> outputs) const;

 private:
  void require_kept(std::string_view option, const std::filesystem::path& output) const;

  std::vector<std::filesystem::path> paths_;
};

}  // namespace concord::cli
