// The attribute "name" of a group, from the bytes of the file: HDF5 1.10 reads texts of any length from a damaged file
// without a check of their place.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace concord_hdf5 {

/// A file as "HDF5 File Format Specification Version 3.0" describes it, with addresses of 8 bytes.
class RawFile {
 public:
  /// Without a file nothing has a name.
  explicit RawFile(const char* path);

  /// The attribute "name" of the object whose header, of version 1, is at `address`: a text. Empty if it has none.
  [[nodiscard]] std::string name_of_object(std::uint64_t address);

 private:
  using Bytes = std::vector<unsigned char>;
  struct Block {
    std::uint64_t at, bytes;
  };

  /// Empty where the file does not have them all.
  [[nodiscard]] Bytes read(std::uint64_t at, std::uint64_t count);
  [[nodiscard]] std::string name_in_attribute(std::span<const unsigned char> message);
  [[nodiscard]] std::string text_in_heap(std::uint64_t collection, std::uint64_t index, std::uint64_t length);

  std::ifstream file_;
  std::uint64_t bytes_ = 0, read_ = 0;
};

}  // namespace concord_hdf5
