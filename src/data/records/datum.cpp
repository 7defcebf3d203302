// The label of a message comes after its pixels, so the reader walks over fields by their lengths. protozero reads
// messages in memory alone; it writes them here.
#include "concord/data/records/datum.hpp"

#include <protozero/pbf_writer.hpp>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

constexpr std::uint32_t kChannels = 1, kHeight = 2, kWidth = 3, kData = 4, kLabel = 5, kFloatData = 6, kEncoded = 7;
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class DatumReader {
 public:
  DatumReader(std::uint64_t bytes, const DatumSource& source) : bytes_(bytes), source_(source) {}

  DatumHead read() {
    DatumHead head;
    while (at_ < bytes_) {
      const std::uint64_t tag = varint();
      const std::uint64_t field = tag >> 3;
      const auto type = static_cast<WireType>(tag & 7);
      if (field == 0) fail("has a field of number 0");
      if (type == WireType::varint) {
        take_number(head, field, static_cast<std::int32_t>(static_cast<std::uint32_t>(varint())));
      } else if (type == WireType::bytes) {
        const std::uint64_t length = varint();
        if (field == kData) {
          head.data_offset = at_;
          head.data_bytes = length;
        }
        if (field == kFloatData && length > 0) head.has_floats = true;
        skip(length);
      } else if (type == WireType::fixed32) {
        if (field == kFloatData) head.has_floats = true;
        skip(4);
      } else if (type == WireType::fixed64) {
        skip(8);
      } else {
        fail("has a field of an unknown type");
      }
    }
    return head;
  }

 private:
  static void take_number(DatumHead& head, std::uint64_t field, std::int32_t value) {
    switch (field) {
      case kChannels: head.channels = value; break;
      case kHeight: head.height = value; break;
      case kWidth: head.width = value; break;
      case kLabel: head.label = value; break;
      case kEncoded: head.is_encoded = value != 0; break;
      default: break;
    }
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw FormatError(fmt::format("the value is no Datum: byte {} {}", at_, message));
  }

  void skip(std::uint64_t length) {
    if (length > bytes_ - at_) fail("has a field that is longer than the value");
    at_ += length;
  }

  std::uint8_t byte() {
    if (at_ == bytes_) fail("is the end, within a number");
    if (at_ < begin_ || at_ - begin_ >= window_.size()) {
      window_ = source_(at_);
      begin_ = at_;
    }
    return std::to_integer<std::uint8_t>(window_[static_cast<std::size_t>(at_++ - begin_)]);
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7Fu} << shift;
      if (next < 0x80) return value;
    }
    fail("ends a number of more than 64 bits");
  }

  std::uint64_t bytes_, at_ = 0, begin_ = 0;
  const DatumSource& source_;
  std::span<const std::byte> window_;
};

}  // namespace

DatumHead read_datum_head(std::uint64_t bytes, const DatumSource& source) { return DatumReader(bytes, source).read(); }

std::string datum_of(std::span<const std::byte> file, std::int32_t label) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_bytes(kData, reinterpret_cast<const char*>(file.data()), file.size());
  writer.add_int32(kLabel, label);
  writer.add_bool(kEncoded, true);
  return bytes;
}

std::string datum_of(const RawImage& image, std::span<const std::byte> pixels, std::int32_t label) {
  const auto plane = static_cast<std::size_t>(image.height * image.width);
  CONCORD_CHECK(pixels.size() == plane * static_cast<std::size_t>(image.channels), ShapeError,
                "an image [{}, {}, {}] has {} bytes", image.channels, image.height, image.width, pixels.size());
  const std::string_view text(reinterpret_cast<const char*>(pixels.data()), pixels.size());
  std::string planes(text);
  if (image.channels == 3 && !image.is_blue_first) {
    planes.replace(0, plane, text.substr(2 * plane));
    planes.replace(2 * plane, plane, text.substr(0, plane));
  }
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_int32(kChannels, static_cast<std::int32_t>(image.channels));
  writer.add_int32(kHeight, static_cast<std::int32_t>(image.height));
  writer.add_int32(kWidth, static_cast<std::int32_t>(image.width));
  writer.add_bytes(kData, planes);
  writer.add_int32(kLabel, label);
  writer.add_bool(kEncoded, false);
  return bytes;
}

}  // namespace concord::data
