// Images, read and measured.
#include "concord/cli/data/image_facts.hpp"

#include "concord/cli/command.hpp"
#include "concord/core/error.hpp"
#include "concord/data/image/image_samples_raw.hpp"
#include "concord/data/image/mask.hpp"

namespace concord::cli {
namespace {

/// Sums of integers, so that they are exact.
void measure(const data::Image& image, ImageFacts& facts) {
  std::array<std::uint64_t, 3> sum{}, square{};
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint64_t value = image.pixels[i + c];
      sum[c] += value;
      square[c] += value * value;
    }
  }
  const auto pixels = static_cast<double>(image.height * image.width);
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t from = channels == 3 ? c : 0;
    facts.mean[c] = static_cast<double>(sum[from]) / pixels / 255;
    facts.square[c] = static_cast<double>(square[from]) / pixels / (255.0 * 255.0);
  }
}

/// Reads and decodes the mask of an image, and counts its pixels.
void examine_mask(const data::Records& records, std::int64_t row, const ImageFacts& image, ImageMemory& memory) {
  const data::Record mask = records.read_mask(row, memory.mask);
  const data::ImageInfo info = data::read_mask_info(mask);
  data::check_mask_size(info, image.height, image.width);
  data::decode_mask(mask, info, memory.mask_image);
  data::check_mask_classes(memory.mask_image, records.mask_classes);
  for (const std::uint8_t number : memory.mask_image.pixels) ++memory.mask_pixels[number];
}

}  // namespace

DecodedImage read_image(const data::Records& records, std::int64_t row, ImageMemory& memory) {
  DecodedImage decoded{records.read(row, memory.file), {}};
  const data::Record& record = decoded.record;
  data::ImageInfo& info = decoded.info;
  if (record.raw) {
    const data::RawImage& raw = *record.raw;
    data::check_raw(raw, record.bytes.size());
    data::unpack_raw(record.bytes, raw, {0, 0, raw.width, raw.height}, raw.channels, memory.image);
    info.height = raw.height, info.width = raw.width, info.channels = raw.channels;
    return decoded;
  }
  info = data::read_image_info(record.bytes);
  const std::int64_t channels = info.channels <= 2 ? 1 : 3;
  static_cast<void>(data::decode_image(record.bytes, info, {0, 0, info.width, info.height}, channels, memory.image));
  return decoded;
}

std::string examine(const data::Records& records, std::int64_t row, ImageMemory& memory, ImageFacts& facts) {
  try {
    const DecodedImage decoded = read_image(records, row, memory);
    const data::ImageInfo& info = decoded.info;
    facts.is_raw = decoded.record.raw.has_value();
    facts.format = info.format;
    facts.channels = static_cast<std::uint8_t>(info.channels);
    facts.bits = static_cast<std::uint8_t>(info.bits);
    facts.orientation = static_cast<std::uint8_t>(info.orientation);
    facts.height = static_cast<std::int32_t>(info.height);
    facts.width = static_cast<std::int32_t>(info.width);
    facts.bytes = decoded.record.bytes.size();
    const data::Image& image = memory.image;
    const auto size = static_cast<std::uint64_t>(image.width) << 2 | static_cast<std::uint64_t>(image.channels);
    facts.pixels = fingerprint_of(std::as_bytes(std::span(image.pixels)), size);
    facts.stored = facts.is_raw ? facts.pixels : fingerprint_of(decoded.record.bytes);
    measure(image, facts);
    if (records.has_mask()) examine_mask(records, row, facts, memory);
    facts.is_good = true;
    return {};
  } catch (const FormatError& error) {
    return without_name(error.what(), records.name_of(row));
  } catch (const IoError& error) {
    return without_name(error.what(), records.name_of(row));
  }
}

std::string format_name(const ImageFacts& facts) {
  if (facts.is_raw) return "raw pixels";
  switch (facts.format) {
    case data::ImageFormat::jpeg: return "JPEG";
    case data::ImageFormat::png: return "PNG";
    case data::ImageFormat::bmp: return "BMP";
    case data::ImageFormat::pnm: break;
  }
  return "PNM";
}

}  // namespace concord::cli
