// Object headers, attribute messages and the heap that has texts of any length. What is damaged has no name.
#include "group_name.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace concord_hdf5 {
namespace {

constexpr std::uint64_t kLongestBlock = 1U << 20U;  // of a header or a heap
constexpr std::uint64_t kMostRead = 256U << 20U;    // of all: many names may lead to one block
constexpr std::uint64_t kLongestName = 1024;
constexpr std::size_t kMostBlocks = 32;  // of a header: one may name itself as its continuation
constexpr unsigned kAttribute = 0x0C, kContinuation = 0x10;
constexpr std::string_view kName{"name\0", 5};

using View = std::span<const unsigned char>;

/// Little-endian, of `count` bytes; 0 beyond the end.
std::uint64_t number_at(View bytes, std::size_t at, std::size_t count) {
  if (at > bytes.size() || count > bytes.size() - at) return 0;
  std::uint64_t number = 0;
  for (std::size_t i = count; i-- > 0;) number = number << 8U | bytes[at + i];
  return number;
}

/// A part; empty beyond the end.
View part_of(View bytes, std::size_t at, std::size_t count) {
  return at > bytes.size() || count > bytes.size() - at ? View{} : bytes.subspan(at, count);
}

std::string text_of(View bytes) { return {bytes.begin(), std::ranges::find(bytes, static_cast<unsigned char>('\0'))}; }

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

RawFile::RawFile(const char* path) : file_(path, std::ios::binary) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  bytes_ = unknown ? 0 : size;
}

RawFile::Bytes RawFile::read(std::uint64_t at, std::uint64_t count) {
  if (at > bytes_ || count > bytes_ - at || count > kLongestBlock || read_ > kMostRead) return {};
  read_ += count;
  Bytes bytes(static_cast<std::size_t>(count));
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(at));
  file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count));
  if (static_cast<std::uint64_t>(file_.gcount()) != count) bytes.clear();
  return bytes;
}

std::string RawFile::name_of_object(std::uint64_t address) {
  const Bytes prefix = read(address, 16);  // version, number of messages, references, size of the first block
  if (prefix.empty() || prefix[0] != 1) return {};
  std::vector<Block> blocks{{address + 16, number_at(prefix, 8, 4)}};
  for (std::size_t block = 0; block < blocks.size() && block < kMostBlocks; ++block) {
    const Bytes bytes = read(blocks[block].at, blocks[block].bytes);
    std::size_t at = 0;
    while (at + 8 <= bytes.size()) {  // type, size, flags
      const std::uint64_t type = number_at(bytes, at, 2);
      const auto size = static_cast<std::size_t>(number_at(bytes, at + 2, 2));
      const View message = part_of(bytes, at + 8, size);
      if (type == kContinuation) blocks.push_back({number_at(message, 0, 8), number_at(message, 8, 8)});
      if (type == kAttribute) {
        std::string name = name_in_attribute(message);
        if (!name.empty()) return name;
      }
      at += 8 + size;
    }
  }
  return {};
}

std::string RawFile::name_in_attribute(View message) {
  const std::uint64_t version = number_at(message, 0, 1);
  if (version < 1 || version > 3) return {};
  const auto place = [&](std::size_t bytes) { return version == 1 ? padded(bytes) : bytes; };
  const auto name_bytes = static_cast<std::size_t>(number_at(message, 2, 2));
  const auto type_bytes = static_cast<std::size_t>(number_at(message, 4, 2));
  const auto space_bytes = static_cast<std::size_t>(number_at(message, 6, 2));
  const std::size_t name_at = version == 3 ? 9 : 8, type_at = name_at + place(name_bytes);
  const std::size_t data_at = type_at + place(type_bytes) + place(space_bytes);
  if (!std::ranges::equal(part_of(message, name_at, name_bytes), kName)) return {};
  const View type = part_of(message, type_at, type_bytes);
  const std::uint64_t kind = number_at(type, 0, 1) & 0xFU, bits = number_at(type, 1, 1) & 0xFU;
  if (kind == 3) return text_of(part_of(message, data_at, static_cast<std::size_t>(number_at(type, 4, 4))));
  if (kind != 9 || bits != 1) return {};  // of variable length, a text
  return text_in_heap(number_at(message, data_at + 4, 8), number_at(message, data_at + 12, 4),
                      number_at(message, data_at, 4));
}

std::string RawFile::text_in_heap(std::uint64_t collection, std::uint64_t index, std::uint64_t length) {
  const Bytes prefix = read(collection, 16);  // signature, version, size
  if (prefix.empty() || text_of(part_of(prefix, 0, 4)) != "GCOL" || index == 0 || length > kLongestName) return {};
  const Bytes bytes = read(collection, number_at(prefix, 8, 8));
  std::size_t at = 16;
  while (at + 16 <= bytes.size()) {  // index, references, size
    const std::uint64_t object = number_at(bytes, at, 2), size = number_at(bytes, at + 8, 8);
    if (object == index) return length <= size ? text_of(part_of(bytes, at + 16, length)) : std::string();
    if (object == 0 || size > bytes.size()) return {};
    at += 16 + padded(static_cast<std::size_t>(size));
  }
  return {};
}

}  // namespace concord_hdf5
