// The head of an array, in the one form that numpy writes for u8 of three dimensions.
#include "concord/data/records/array_file.hpp"

#include <charconv>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kArrayMagic("\x93NUMPY\x01\x00\x76\x00", 10);  // version 1, 118 bytes follow
constexpr std::string_view kArrayType = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
constexpr std::string_view kArrayEnd = "), }";

}  // namespace

std::string array_head(const RawImage& image) {
  std::string head(kArrayMagic);
  head += fmt::format("{}{}, {}, {}{}", kArrayType, image.channels, image.height, image.width, kArrayEnd);
  head.resize(kArrayHeadBytes - 1, ' ');
  return head + '\n';
}

std::optional<RawImage> read_array_head(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kArrayMagic.substr(0, 6))) return std::nullopt;
  constexpr const char* kWhat = "its array is not u8 [channels, rows, columns] in the order of C, as numpy writes it";
  CONCORD_CHECK(text.size() >= kArrayHeadBytes && text.starts_with(kArrayMagic), FormatError, "{}", kWhat);
  text = text.substr(kArrayMagic.size(), kArrayHeadBytes - kArrayMagic.size());
  CONCORD_CHECK(text.starts_with(kArrayType), FormatError, "{}", kWhat);
  text.remove_prefix(kArrayType.size());
  RawImage image;
  for (std::int64_t* const size : {&image.channels, &image.height, &image.width}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *size);
    CONCORD_CHECK(error == std::errc{} && *size >= 0, FormatError, "{}", kWhat);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (size == &image.width) break;
    CONCORD_CHECK(text.starts_with(", "), FormatError, "{}", kWhat);
    text.remove_prefix(2);
  }
  CONCORD_CHECK(text.starts_with(kArrayEnd), FormatError, "{}", kWhat);
  return image;
}

}  // namespace concord::data
