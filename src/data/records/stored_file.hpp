// StoredFile: a file that is read at any place by any number of threads. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace concord::data {

/// Distinguishes a file from one that has taken its place, or that was written to.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

class StoredFile {
 public:
  /// Throws IoError with the path and the reason, also if it is no regular file, and OutOfMemory.
  explicit StoredFile(const std::filesystem::path& path);
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;
  ~StoredFile();

  /// What it was when it was opened.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }
  /// Whether it is still that.
  [[nodiscard]] bool is_unchanged() const;
  /// Fills `bytes` from `offset` on. Returns how many there were: fewer where the file ends. Throws IoError.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// The same into several places, one behind the other in the file; at most kMostParts.
  [[nodiscard]] std::size_t read_parts(std::uint64_t offset, std::span<const std::span<std::byte>> parts) const;
  static constexpr std::size_t kMostParts = 4;
  /// Throws FormatError if there are fewer.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  [[nodiscard]] std::string name() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  FileStamp stamp_;
};

/// The first `bytes` bytes of a buffer, which grows if it is smaller. It never shrinks: growing fills with zeros.
[[nodiscard]] std::span<std::byte> room_in(std::vector<std::byte>& buffer, std::size_t bytes);

/// Reads a whole file, such as an image, into `buffer`. Throws IoError, and FormatError for more than kMostFileBytes.
[[nodiscard]] std::span<const std::byte> read_stored_file(const std::filesystem::path& path,
                                                          std::vector<std::byte>& buffer);
inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 31;

}  // namespace concord::data
