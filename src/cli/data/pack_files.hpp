// Files and folders that packing writes, and what it may replace.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concord::cli {

/// Behind the names of what is not complete.
inline constexpr std::string_view kIncomplete = ".incomplete";

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Writes a new file that is not flushed to the disk. Throws IoError.
void write_packed_file(const std::filesystem::path& path, std::string_view content);

/// Refuses to write over, remove or add a classes.txt in a folder with `others`, files of another set: it holds for all
/// sets there. Without others it may be replaced if that is forced. Throws IoError.
void check_class_file(const std::filesystem::path& folder, const std::vector<std::string>& names, bool is_forced,
                      const std::vector<std::filesystem::path>& others = {});
/// Writes the names; without names removes the file, which would belong to other labels.
void write_class_file(const std::filesystem::path& folder, const std::vector<std::string>& names);

/// A folder that is made under another name and then takes the place of `path`.
class NewFolder {
 public:
  /// What is at `path` may be replaced if it is an empty folder; or if that is forced, a folder in which `is_ours` says
  /// yes of every file, whose path is relative to the folder. Throws IoError otherwise.
  NewFolder(std::filesystem::path path, bool is_forced,
            const std::function<bool(const std::filesystem::path&)>& is_ours);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  /// Removes it unless it was finished.
  ~NewFolder();
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void finish();

 private:
  std::filesystem::path path_, temporary_;
  bool is_finished_ = false;
};

}  // namespace concord::cli
