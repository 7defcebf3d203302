// Reads a TensorProto: raw bytes, lists of numbers or a part of another file, all brought into one form.
#include "concord/onnx/tensor_data.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::onnx {
namespace {

namespace fs = std::filesystem;

// The lists of a message, by the element types that use them.
struct NumberLists {
  std::vector<float> f32;         // f32, complex64
  std::vector<double> f64;        // f64, complex128
  std::vector<std::int64_t> i32;  // i32 and all that is smaller, f16 and bf16 as bits
  std::vector<std::int64_t> i64;
  std::vector<std::uint64_t> u64;  // u64, u32
};

// Stores the low bytes of each number, little-endian.
template <class Number>
std::vector<std::byte> little_endian(const std::vector<Number>& numbers, std::size_t bytes) {
  std::vector<std::byte> result;
  result.reserve(numbers.size() * bytes);
  for (const Number number : numbers) {
    std::uint64_t bits = 0;
    if constexpr (std::is_same_v<Number, float>) {
      bits = std::bit_cast<std::uint32_t>(number);
    } else {
      bits = std::bit_cast<std::uint64_t>(number);
    }
    for (std::size_t i = 0; i < bytes; ++i) result.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
  return result;
}

std::vector<std::byte> listed_bytes(ElementType type, const NumberLists& lists) {
  const std::size_t bytes = std::max<std::size_t>(bits_of(type) / 8, 1);
  switch (type) {
    case ElementType::f32:
    case ElementType::complex64: return little_endian(lists.f32, sizeof(float));
    case ElementType::f64:
    case ElementType::complex128: return little_endian(lists.f64, sizeof(double));
    case ElementType::i64: return little_endian(lists.i64, bytes);
    case ElementType::u32:
    case ElementType::u64: return little_endian(lists.u64, bytes);
    default: return little_endian(lists.i32, bytes);
  }
}

// The bytes that the dimensions ask for; nothing beyond 2^62.
std::optional<std::uint64_t> bytes_needed(const TensorProto& tensor) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 55;  // elements of at most 128 bits
  std::uint64_t elements = 1;
  bool empty = false;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0 || static_cast<std::uint64_t>(dim) > kMost) return std::nullopt;
    empty = empty || dim == 0;
    const std::uint64_t size = std::max<std::uint64_t>(static_cast<std::uint64_t>(dim), 1);
    if (elements > kMost / size) return std::nullopt;  // the others are limited next to a 0 too
    elements *= size;
  }
  if (empty) return 0;
  return (elements * bits_of(tensor.type) + 7) / 8;
}

// The place of a file's data outside of it (external_data).
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length = std::nullopt;
};

ExternalPlace external_place(const Message& message, const Bindings& entries) {
  ExternalPlace place;
  const auto number = [&](const std::string& key, const std::string& text) {
    const auto value = number_in_text<std::uint64_t>(text);
    message.require(value.has_value(), fmt::format("external_data: {} is \"{}\", not a number", key, printable(text)));
    return *value;
  };
  for (const auto& [key, value] : entries) {
    if (key == "location") place.location = value;
    if (key == "offset") place.offset = number(key, value);
    if (key == "length") place.length = number(key, value);
  }
  message.require(!place.location.empty(), "external_data names no location");
  return place;
}

// The file of external data, which must not lie outside the folder, whatever links it leads through.
fs::path external_file(const Source& source, const Message& message, const std::string& location) {
  const std::string shown = printable(location);
  message.require(!source.folder.empty(),
                  fmt::format("its data is in the file \"{}\", but a model in memory has no folder", shown));
  message.require(location.find('\0') == std::string::npos && fs::path(location).is_relative(),
                  fmt::format("external_data: \"{}\" is not a path within the model's folder", shown));
  std::error_code error;
  const fs::path folder = fs::canonical(source.folder, error);
  message.require(!error, fmt::format("the folder of the model cannot be read: {}", error.message()));
  const fs::path lexical = (folder / location).lexically_normal();
  const auto is_below = [&](const fs::path& path) {
    return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
  };
  message.require(is_below(lexical), fmt::format("external_data: \"{}\" leaves the model's folder", shown));
  const fs::path path = fs::canonical(folder / location, error);
  message.require(!error, fmt::format("its data is in \"{}\", which cannot be read: {}", shown, error.message()));
  message.require(is_below(path),
                  fmt::format("external_data: \"{}\" leads out of the model's folder by a link", shown));
  message.require(fs::is_regular_file(path, error), fmt::format("external_data: \"{}\" is not a regular file", shown));
  return path;
}

Bytes external_bytes(const Source& source, const Message& message, const ExternalPlace& place, std::uint64_t needed) {
  const fs::path path = external_file(source, message, place.location);
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  CONCORD_CHECK(!error, IoError, "cannot read {}: {}", path.string(), error.message());
  message.require(place.length.value_or(needed) == needed,
                  fmt::format("its shape and type need {} bytes, but external_data has a length of {}", needed,
                              place.length.value_or(0)));
  message.require(place.offset <= size && needed <= size - place.offset,
                  fmt::format("its data is bytes {} to {} of \"{}\", which has {}", place.offset, place.offset + needed,
                              printable(place.location), size));
  auto bytes = std::make_shared<std::vector<std::byte>>(needed);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(place.offset));
  file.read(reinterpret_cast<char*>(bytes->data()), static_cast<std::streamsize>(needed));
  CONCORD_CHECK(file.good(), IoError, "cannot read {}", path.string());
  const std::span<const std::byte> data = *bytes;
  return {std::move(bytes), data};
}

}  // namespace

std::pair<std::string, std::string> read_pair(Message message) {
  std::pair<std::string, std::string> pair;
  message.each_field([&](std::uint32_t tag) {
    if (tag == 1) pair.first = message.text();
    if (tag == 2) pair.second = message.text();
  });
  return pair;
}

TensorProto read_tensor_message(const Source& source, Message message) {
  TensorProto tensor;
  NumberLists lists;
  Bindings external;
  std::optional<std::string_view> raw;
  bool is_external = false;
  message.each_field([&](std::uint32_t tag) {
    switch (tag) {
      case 1: return message.append(tensor.dims);
      case 2:
        tensor.type = static_cast<ElementType>(
            std::clamp<std::int64_t>(message.integer(), -1, std::numeric_limits<std::int32_t>::max()));
        return;
      case 3: return message.fail("is a segment of a tensor, which Concord does not read");
      case 4: return message.append(lists.f32);
      case 5: return message.append(lists.i32);
      case 6: tensor.strings.push_back(message.bytes()); return;
      case 7: return message.append(lists.i64);
      case 8: tensor.name = message.text(); return;
      case 9: raw = message.view(); return;
      case 10: return message.append(lists.f64);
      case 11: return message.append(lists.u64);
      case 13: external.push_back(read_pair(message.message("StringStringEntryProto"))); return;
      case 14: is_external = message.integer() == 1; return;
      default: return;
    }
  });

  const std::string subject =
      tensor.name.empty() ? "a tensor without a name" : "tensor '" + printable(tensor.name) + "'";
  message.require(tensor.dims.size() <= 64, subject + " has more than 64 dimensions");
  const auto needed = bytes_needed(tensor);
  message.require(needed.has_value(), subject + ": a dimension is negative or too large");
  if (tensor.type == ElementType::string) {
    message.require(!is_external && !raw, subject + ": strings cannot be raw or external data");
    message.require(
        tensor.strings.size() == static_cast<std::size_t>(tensor.elements()),
        fmt::format("{} has {} strings, its shape needs {}", subject, tensor.strings.size(), tensor.elements()));
    return tensor;
  }
  message.require(bits_of(tensor.type) != 0,
                  fmt::format("{} has an unknown element {}", subject, name_of(tensor.type)));
  if (is_external) {
    tensor.data = external_bytes(source, message, external_place(message, external), *needed);
    return tensor;
  }
  if (raw) {
    tensor.data = {source.holder, std::as_bytes(std::span(*raw))};
  } else {
    auto numbers = std::make_shared<std::vector<std::byte>>(listed_bytes(tensor.type, lists));
    const std::span<const std::byte> data = *numbers;
    tensor.data = {std::move(numbers), data};
  }
  message.require(tensor.data.data.size() == *needed, fmt::format("{} has {} bytes of data, its shape and type need {}",
                                                                  subject, tensor.data.data.size(), *needed));
  return tensor;
}

}  // namespace concord::onnx
