// Arrays of numpy's .npz files: a zip archive of .npy files, as numpy.savez and numpy.savez_compressed write it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/io/npy.hpp"

namespace concord::io {
class ZipArchive;
}

namespace CONCORD_PUBLIC concord {
namespace io {

/// An open archive. Nothing is extracted, so names such as ../x are only names. Entries that are no .npy files are
/// passed over. One thread at a time.
class NpzFile {
 public:
  /// Reads the directory. Throws IoError, and FormatError if the file is no zip archive, has an array twice, or one of
  /// a size that its bytes cannot have.
  explicit NpzFile(const std::filesystem::path& path);
  NpzFile(const NpzFile&) = delete;
  NpzFile& operator=(const NpzFile&) = delete;
  ~NpzFile();

  /// The names of the arrays, without ".npy", in the order of the archive.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const;
  /// Reads an array, with the types and errors of read_npy. Throws ArgumentError with the names that there are, and
  /// FormatError if the sum of an entry is wrong, or if it is encrypted or neither stored nor deflated.
  [[nodiscard]] Tensor read(std::string_view name) const;
  /// The same, and whether it is of bool.
  [[nodiscard]] NpyArray read_array(std::string_view name) const;

 private:
  std::unique_ptr<ZipArchive> archive_;
  std::vector<std::string> names_;
};

}  // namespace io
}  // namespace concord
