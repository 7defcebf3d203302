// The orientation tag of EXIF: one entry of the first directory of a TIFF structure.
#include "concord/data/image/exif.hpp"

#include <cstdint>

#include "concord/data/image/codec_parts.hpp"

namespace concord::data {

int exif_orientation(std::span<const std::byte> tiff) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3;
  if (tiff.size() < 8) return 1;
  const bool little = begins_with(tiff, {"II*\0", 4});
  if (!little && !begins_with(tiff, {"MM\0*", 4})) return 1;
  const auto u16 = [&](std::size_t at) { return little ? u16_little(tiff, at) : u16_big(tiff, at); };
  const auto u32 = [&](std::size_t at) { return little ? u32_little(tiff, at) : u32_big(tiff, at); };
  const std::size_t directory = u32(4);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t entries = u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (entry + 12 > tiff.size()) return 1;
    if (u16(entry) != kOrientation) continue;
    const std::uint32_t value = u16(entry + 8);
    return u16(entry + 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace concord::data
