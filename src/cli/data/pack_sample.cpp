// Copies, resized and encoded images.
#include "concord/cli/data/pack_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "concord/core/error.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/image_samples_raw.hpp"
#include "concord/data/image/mask.hpp"
#include "concord/data/image/resample.hpp"
#include "concord/data/records/array_file.hpp"

namespace concord::cli {
namespace {

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string extension_of(const data::ImageInfo& info) {
  switch (info.format) {
    case data::ImageFormat::jpeg: return "jpg";
    case data::ImageFormat::png: return "png";
    case data::ImageFormat::bmp: return "bmp";
    case data::ImageFormat::pnm: break;
  }
  return info.channels == 1 ? "pgm" : "ppm";
}

/// What a file must become; nothing if it may stay as it is.
std::optional<PackFormat> change_of(const data::ImageInfo& info, const PackHow& how) {
  const bool is_jpeg = info.format == data::ImageFormat::jpeg, is_png = info.format == data::ImageFormat::png;
  const bool is_resized = how.side > 0 && std::min(info.height, info.width) > how.side;
  switch (how.format) {
    case PackFormat::raw: return PackFormat::raw;
    case PackFormat::jpeg: return is_jpeg && !is_resized ? std::nullopt : std::optional(PackFormat::jpeg);
    case PackFormat::png: return is_png && !is_resized ? std::nullopt : std::optional(PackFormat::png);
    case PackFormat::keep: break;
  }
  if (!is_resized) return std::nullopt;
  return is_jpeg ? PackFormat::jpeg : PackFormat::png;
}

/// Returns whether it was resized.
bool shrink(data::Image& image, std::int64_t side) {
  const std::int64_t shorter = std::min(image.height, image.width);
  if (side == 0 || shorter <= side) return false;
  const double scale = static_cast<double>(side) / static_cast<double>(shorter);
  const auto scaled = [&](std::int64_t length) {
    return length == shorter ? side : std::max(side, std::int64_t{std::llround(static_cast<double>(length) * scale)});
  };
  data::Image small;
  data::resample(image, {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)},
                 scaled(image.height), scaled(image.width), small);
  image = std::move(small);
  return true;
}

void encode(const data::Image& image, PackFormat format, const PackHow& how, PackedSample& packed) {
  switch (format) {
    case PackFormat::jpeg:
      packed.bytes = data::encode_jpeg(image, how.quality);
      packed.extension = "jpg";
      return;
    case PackFormat::raw:
      if (how.raw != PackHow::Raw::pnm) {
        const data::RawImage raw{image.channels, image.height, image.width};
        if (how.raw == PackHow::Raw::datum) packed.raw = raw;
        if (how.raw == PackHow::Raw::array) packed.bytes = data::array_head(raw);
        const std::size_t head = packed.bytes.size();
        packed.bytes.resize(head + image.pixels.size());
        data::to_planes(image, false,
                        {reinterpret_cast<std::uint8_t*>(packed.bytes.data()) + head, image.pixels.size()});
        packed.extension = data::kArrayExtension;
        return;
      }
      packed.bytes = fmt::format("P{}\n{} {}\n255\n", image.channels == 1 ? 5 : 6, image.width, image.height);
      packed.bytes += as_text(std::as_bytes(std::span(image.pixels)));
      packed.extension = image.channels == 1 ? "pgm" : "ppm";
      return;
    default: packed.bytes = data::encode_png(image); packed.extension = "png";
  }
}

/// The mask of an image that is stored with these sizes.
void pack_mask(const data::Records& records, std::int64_t row, const data::ImageInfo& image, const PackHow& how,
               bool is_resized, ImageMemory& memory, PackedSample& packed) {
  const data::Record mask = records.read_mask(row, memory.mask);
  const data::ImageInfo info = data::read_mask_info(mask);
  data::check_mask_size(info, image.height, image.width);
  if (is_resized || how.is_verified) {
    data::decode_mask(mask, info, memory.mask_image);
    data::check_mask_classes(memory.mask_image, records.mask_classes);
  }
  if (!is_resized) {
    packed.mask = as_text(mask.bytes);
    return;
  }
  data::Image small;
  data::resample_nearest(memory.mask_image, {0, 0, static_cast<double>(info.width), static_cast<double>(info.height)},
                         memory.image.height, memory.image.width, small);
  packed.mask = data::encode_png(small);
}

PackedSample packed_image(const data::Records& records, std::int64_t row, const PackHow& how, ImageMemory& memory) {
  PackedSample packed;
  const data::Record record = records.read(row, memory.file);
  bool is_resized = false;
  data::ImageInfo info;
  if (record.raw) {
    data::check_raw(*record.raw, record.bytes.size());
    const data::RawImage& raw = *record.raw;
    data::unpack_raw(record.bytes, raw, {0, 0, raw.width, raw.height}, raw.channels, memory.image);
    info.height = raw.height, info.width = raw.width;
    is_resized = shrink(memory.image, how.side);
    // Pixels in files stay pixels where there is a form for them; those of sets in memory have no file to keep.
    const bool has_form =
        how.raw == PackHow::Raw::datum || (how.raw == PackHow::Raw::array && records.dataset() == nullptr);
    const bool stays_raw = how.format == PackFormat::keep && has_form;
    const PackFormat format = how.format != PackFormat::keep ? how.format : PackFormat::png;
    encode(memory.image, stays_raw ? PackFormat::raw : format, how, packed);
    packed.is_copy = stays_raw && !is_resized;
  } else {
    info = data::read_image_info(record.bytes);
    const auto change = change_of(info, how);
    if (change || how.is_verified) {
      const std::int64_t channels = info.channels <= 2 ? 1 : 3;
      static_cast<void>(
          data::decode_image(record.bytes, info, {0, 0, info.width, info.height}, channels, memory.image));
    }
    if (change) {
      is_resized = shrink(memory.image, how.side);
      encode(memory.image, *change, how, packed);
    } else {
      packed.bytes = as_text(record.bytes);
      packed.extension = extension_of(info);
      packed.is_copy = true;
    }
  }
  if (records.has_mask()) pack_mask(records, row, info, how, is_resized, memory, packed);
  return packed;
}

PackedSample not_packed(const std::string& sample, const std::string& message) {
  const std::string name = printable(sample);  // as messages have it
  PackedSample packed;
  packed.error = message.starts_with(name) ? message : fmt::format("{}: {}", name, message);
  return packed;
}

}  // namespace

PackedSample pack_sample(const data::Records& records, std::int64_t row, const PackHow& how, ImageMemory& memory) {
  try {
    return packed_image(records, row, how, memory);
  } catch (const FormatError& error) {
    return not_packed(records.name_of(row), error.what());
  } catch (const IoError& error) {
    return not_packed(records.name_of(row), error.what());
  }
}

}  // namespace concord::cli
