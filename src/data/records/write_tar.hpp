// TarWriter: writes a shard of samples. Internal to the module; used by `concord data pack` and tests.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace concord::data {

/// Writes a tar file whose bytes depend on what is added alone. The file appears, complete, with `finish`. Errors are
/// IoError.
class TarWriter {
 public:
  /// With `has_ascii_names` every name has to be ASCII; then a file takes a header of 512 bytes, else three of them.
  explicit TarWriter(const std::filesystem::path& path, bool has_ascii_names = false);
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;
  ~TarWriter();
  /// Adds the file "<key>.<extension>". Throws ArgumentError for a name that a reader would not find again: one that is
  /// empty, begins with '/' or a point, has "..", a point after its last '/' or a zero.
  void add(std::string_view key, std::string_view extension, std::span<const std::byte> bytes);
  /// Writes the end. Nothing may be added after it.
  void finish();

 private:
  struct Output;
  std::unique_ptr<Output> output_;
};

}  // namespace concord::data
