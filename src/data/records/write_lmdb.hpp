// LmdbWriter: writes a database. Internal to the module; used by `concord data pack` and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace concord::data {

/// Writes a new database into the folder `directory`, which is made if need be. Errors are IoError. Without `finish`
/// what was written is removed.
class LmdbWriter {
 public:
  /// `bytes` is a guess of its size; it grows beyond. Throws if the folder holds a database.
  explicit LmdbWriter(const std::filesystem::path& directory, std::uint64_t bytes = 0);
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;
  ~LmdbWriter();
  /// Adds a value. Keys in ascending order are fastest. Throws ArgumentError for a key that there is already, or that
  /// has 0 or more than 511 bytes.
  void add(std::string_view key, std::span<const std::byte> value);
  /// Writes the rest to the disk. Nothing may be added after it.
  void finish();

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace concord::data
