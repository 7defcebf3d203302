// Datum: Caffe's message of a sample (caffe.proto, BVLC 2014). Internal to the module; used by lmdb.cpp and by what
// writes databases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/records/records.hpp"

namespace concord::data {

/// A message without its pixels.
struct DatumHead {
  std::int32_t channels = 0, height = 0, width = 0;
  std::uint64_t data_offset = 0, data_bytes = 0;  // in the message; 0 bytes without data
  std::optional<std::int32_t> label = std::nullopt;
  bool is_encoded = false;  // `data` is a file of an image
  bool has_floats = false;  // float_data
};

/// Reads bytes of a message from `offset` on: at least one, at most 2^16. They are valid until the next call.
using DatumSource = std::function<std::span<const std::byte>(std::uint64_t offset)>;

/// Reads a message of `bytes` bytes by parts, without its pixels. Throws FormatError, which does not know the name, if
/// it is damaged.
[[nodiscard]] DatumHead read_datum_head(std::uint64_t bytes, const DatumSource& source);

/// A message with a file of an image.
[[nodiscard]] std::string datum_of(std::span<const std::byte> file, std::int32_t label);
/// A message with pixels, u8 [channels, height, width]; Caffe stores 3 channels as blue, green, red.
[[nodiscard]] std::string datum_of(const RawImage& image, std::span<const std::byte> pixels, std::int32_t label);

}  // namespace concord::data
