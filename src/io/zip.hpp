// ZipArchive: the entries of a zip file, by libzip. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace concord::io {

class ZipArchive {
 public:
  /// Throws IoError, and FormatError if the file is no zip archive or its directory is damaged; `what` is what the
  /// message says that it is not.
  ZipArchive(const std::filesystem::path& path, std::string_view what);
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;
  ~ZipArchive();

  struct Entry {
    std::uint64_t index = 0;  // in the order of the archive
    std::uint64_t bytes = 0;  // unpacked; no more than the file can hold
  };
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// "net.pth, archive/data.pkl", for messages.
  [[nodiscard]] std::string place_of(std::string_view entry) const;
  /// Reads an entry and checks its sum. Throws FormatError.
  [[nodiscard]] std::vector<std::byte> read(std::string_view entry) const;
  [[nodiscard]] std::string read_text(std::string_view entry) const;

 private:
  void read_into(std::string_view entry, std::byte* bytes) const;
  [[nodiscard]] const Entry& entry_of(std::string_view name) const;

  std::filesystem::path path_;
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace concord::io
