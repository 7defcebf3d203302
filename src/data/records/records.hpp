// Records: samples as a folder, a database or an archive stores them, before decoding. Each way of storing them is a
// file beside this one; ImageSamples decodes them. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/data/dataset.hpp"

namespace concord::data {

/// Pixels that are stored as they are: u8 [channels, height, width], red first.
struct RawImage {
  std::int64_t channels = 0, height = 0, width = 0;
  bool is_blue_first = false;  // 3 channels are blue, green, red
};

/// One stored sample.
struct Record {
  std::span<const std::byte> bytes;  // a file of an image, or with `raw` its pixels
  std::optional<RawImage> raw = std::nullopt;
};

/// Several threads read it at the same time. The labels of all samples are in memory.
class Records {
 public:
  std::string name;                      // for messages: "folder /data/cats"
  std::vector<Column> labels;            // [N, …], at least one
  std::vector<std::string> class_names;  // of the first column of labels; may be empty
  int mask_classes = 0;                  // of the pixels of masks; 0: not known

  Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  virtual ~Records() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// What messages call a sample: a path, "shard.tar: cats/1", a key.
  [[nodiscard]] virtual std::string name_of(std::int64_t row) const = 0;
  /// The image of a sample. The bytes lie in `scratch`, whose memory is reused, or in memory that the records own.
  /// Throws IoError or FormatError with the name of the sample.
  [[nodiscard]] virtual Record read(std::int64_t row, std::vector<std::byte>& scratch) const = 0;
  /// Reads the pixels of a sample straight into `planes`, red first, if they are stored as planes of exactly these
  /// sizes. Returns false if they are not, or if that is not known without reading; `planes` may have been written to.
  /// Throws as `read`.
  [[nodiscard]] virtual bool read_planes(std::int64_t /*row*/, const RawImage& /*sizes*/,
                                         std::span<std::byte> /*planes*/) const {
    return false;
  }
  /// The data set in memory whose images these are, or null.
  [[nodiscard]] virtual const Dataset* dataset() const { return nullptr; }
  /// The second image of a sample, such as a mask of classes, if the records have one.
  [[nodiscard]] virtual bool has_mask() const { return false; }
  [[nodiscard]] virtual Record read_mask(std::int64_t row, std::vector<std::byte>& scratch) const;
};
using RecordsPtr = std::shared_ptr<Records>;

}  // namespace concord::data
