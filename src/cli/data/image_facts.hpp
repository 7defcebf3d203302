// What is known of a stored image once it was read and decoded. Used by `concord data check`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "concord/cli/data/fingerprint.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/records/records.hpp"

namespace concord::cli {

struct ImageFacts {
  bool is_good = false;
  bool is_raw = false;  // pixels without a file's format
  std::uint8_t channels = 0, bits = 8, orientation = 1;
  data::ImageFormat format = data::ImageFormat::jpeg;
  std::int32_t height = 0, width = 0;
  std::uint64_t bytes = 0;            // as stored
  Fingerprint stored, pixels;         // of those bytes; of the decoded pixels with their size
  std::array<double, 3> mean = {};    // of the channels, 0 to 1; of a grey image three times the same
  std::array<double, 3> square = {};  // the mean of the squares
};

/// What a thread keeps from image to image.
struct ImageMemory {
  std::vector<std::byte> file, mask;
  data::Image image, mask_image;
  std::array<std::int64_t, 256> mask_pixels{};  // of all masks so far, by their number
};

/// An image of stored records in 1 or 3 channels, upright, as the file has them. Throws FormatError and IoError. The
/// result of `record` may lie in the memory.
struct DecodedImage {
  data::Record record;
  data::ImageInfo info;  // of raw pixels only sizes and channels are set
};
[[nodiscard]] DecodedImage read_image(const data::Records& records, std::int64_t row, ImageMemory& memory);

/// Reads and decodes an image, which is then in `memory.image`, and its mask, whose pixels `memory` counts if nothing
/// is wrong with them. Returns what is wrong, without the name of the sample; empty if nothing is.
[[nodiscard]] std::string examine(const data::Records& records, std::int64_t row, ImageMemory& memory,
                                  ImageFacts& facts);

/// "JPEG", "PNG", "raw pixels".
[[nodiscard]] std::string format_name(const ImageFacts& facts);

}  // namespace concord::cli
