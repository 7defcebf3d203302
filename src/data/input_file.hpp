// InputFile: a data file read from front to back, plain or gzip-compressed, that knows where it is when something is
// wrong. Internal to the room; used by the readers of IDX and CIFAR files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace concord::data {

class InputFile {
 public:
  /// Compression is recognised by content. Throws IoError when the file cannot be opened or is no regular file.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(InputFile&&) noexcept;
  ~InputFile();

  /// Fills `bytes`. Throws FormatError naming `field` when fewer are left or the compressed data is damaged.
  void read(std::span<std::byte> bytes, std::string_view field);
  /// A big-endian 32-bit number.
  [[nodiscard]] std::uint32_t read_u32(std::string_view field);
  /// Throws FormatError unless at least `bytes` more are there; what to call before memory is taken for them.
  void require(std::uint64_t bytes, std::string_view field);
  /// Throws FormatError unless everything has been read and the checksum of compressed data holds.
  void expect_end();
  /// Bytes left, for plain files; compressed ones are read through once to count.
  [[nodiscard]] std::uint64_t remaining();

  /// Throws FormatError "<path>, byte <offset>: <field>: <message>"; the offset is where the last read began.
  [[noreturn]] void fail(std::string_view field, std::string_view message) const;
  /// The same at another offset.
  [[noreturn]] void fail_at(std::uint64_t offset, std::string_view field, std::string_view message) const;

 private:
  struct Stream;
  std::size_t read_some(std::span<std::byte> bytes);

  std::filesystem::path path_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t file_bytes_ = 0;  // on disk
  std::uint64_t offset_ = 0;      // next byte, of the decompressed data
  std::uint64_t field_offset_ = 0;
};

}  // namespace concord::data
