// Index files: what a walk through a large file found, kept beside it. Internal to the module; used by tar files and
// databases.
//
// A line that says what it is, the stamp of the large file, the content, and a CRC-32 of all: numbers in groups of
// seven bits, least first, and texts with their lengths before them. It is a cache: whatever is wrong with it, it is
// made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/records/left_out.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {

class IndexWriter {
 public:
  /// `kind` is the first line: "concord tar index 2\n".
  IndexWriter(std::string_view kind, const FileStamp& file);
  void number(std::uint64_t value);
  void text(std::string_view value);
  void left_out(const LeftOut& files);
  /// All bytes of the index.
  [[nodiscard]] std::string finish();

 private:
  std::string bytes_;
};

/// Throws FormatError with `name` for whatever is wrong. What it reads grows with the bytes alone.
class IndexReader {
 public:
  IndexReader(std::span<const std::byte> bytes, std::string_view kind, const FileStamp& file, std::string name);
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string_view text();
  [[nodiscard]] LeftOut left_out();
  void expect_end() const { check(rest_.empty(), "is longer than it says"); }
  void check(bool holds, std::string_view message) const;

 private:
  std::string_view rest_;
  std::string name_;
};

/// Gives `parse` the bytes of "<path>.idx". If there is none or `parse` throws an Error, keeps there what `make`
/// returns, if the folder can be written to. A file of this name that does not begin with "concord " is not replaced.
void use_index(const std::filesystem::path& path,
               const std::function<void(std::span<const std::byte> bytes, const std::string& name)>& parse,
               const std::function<std::string()>& make);

}  // namespace concord::data
