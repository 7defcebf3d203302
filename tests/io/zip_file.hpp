// Zip archives that tests make: .npz files, also wrong ones.
#pragma once

#include <zlib.h>

#include <string>
#include <vector>

#include "concord/io/npy.hpp"
#include "files.hpp"

namespace concord::test {

struct ZipEntry {
  std::string name, content;
  bool is_deflated = false;
};

/// What write_npy makes of an array.
[[nodiscard]] inline std::string npy_content(const TemporaryFolder& folder, const Tensor& array) {
  io::write_npy(folder / "content.npy", array);
  return content_of(folder / "content.npy");
}

[[nodiscard]] inline std::string deflated(const std::string& content) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string copy = content;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// APPNOTE 6.3.10: each entry, then the directory.
[[nodiscard]] inline std::string zip_content(const std::vector<ZipEntry>& entries) {
  const auto number = [](std::size_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
    return text;
  };
  std::string file, directory;
  for (const ZipEntry& entry : entries) {
    const std::string data = entry.is_deflated ? deflated(entry.content) : entry.content;
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size()));
    const std::string common = number(20, 2) + number(0, 2) + number(entry.is_deflated ? 8 : 0, 2) + number(0, 2) +
                               number(0x21, 2) + number(sum, 4) + number(data.size(), 4) +
                               number(entry.content.size(), 4) + number(entry.name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + common + number(0, 10) + number(file.size(), 4) + entry.name;
    file += "PK\x03\x04" + common + entry.name + data;
  }
  return file + directory + "PK\x05\x06" + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
         number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
}

}  // namespace concord::test
