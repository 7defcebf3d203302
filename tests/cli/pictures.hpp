// Pictures and arrays in files, for the tests of `concord data`.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "concord/data/image/codec.hpp"
#include "files.hpp"

namespace concord::test {

/// A picture that its seed makes.
[[nodiscard]] inline data::Image make_picture(std::int64_t width, std::int64_t height, std::int64_t channels,
                                              int seed) {
  data::Image image;
  image.resize(height, width, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>((i * i / 7 + static_cast<std::size_t>(seed) * 31 + i / 5) % 251);
  }
  return image;
}

/// In a file whose name says the format: .png or .jpg.
inline void write_picture(const TemporaryFolder& folder, const std::string& name, std::int64_t width,
                          std::int64_t height, std::int64_t channels, int seed) {
  const data::Image image = make_picture(width, height, channels, seed);
  std::filesystem::create_directories((folder / name).parent_path());
  write_file(folder / name, name.ends_with(".jpg") ? data::encode_jpeg(image, 95) : data::encode_png(image));
}

/// An array in numpy's format 1.0.
template <class Value>
void write_npy(const std::filesystem::path& path, const std::string& type, const std::string& shape,
               const std::vector<Value>& values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 255U);
  file += static_cast<char>(header.size() >> 8U);
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
  write_file(path, file);
}

}  // namespace concord::test
