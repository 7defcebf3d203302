// ImageSamples: stored images as samples of a network. Decoding, crop, resizing and augmentation are one stage of
// `read`. Internal to the module; the functions that open a folder, a database or an archive return it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/data/image/transform.hpp"
#include "concord/data/records/records.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {

/// Features: u8 [channels, height, width]. Labels: the columns of the records; or if they have masks, only the classes
/// of the mask, i32 [height, width], whose pixels come from the same places as those of the image.
class ImageSamples final : public Samples {
 public:
  /// Throws ArgumentError if the transform is out of range, ShapeError if labels and samples differ in number.
  ImageSamples(RecordsPtr records, ImageTransform transform);

  [[nodiscard]] std::int64_t size() const override { return records_->size(); }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override;
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override;
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns, const SampleRandom& random) const override;
  [[nodiscard]] std::optional<std::int32_t> class_of(std::int64_t row) const override;
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return records_->name_of(row); }

  [[nodiscard]] const ImageTransform& transform() const { return transform_; }
  [[nodiscard]] const Records& records() const { return *records_; }

 private:
  void read_pixels(std::int64_t row, std::span<std::byte> image, std::span<std::byte> mask,
                   const SampleRandom& random) const;

  RecordsPtr records_;
  ImageTransform transform_;
};

/// The samples of stored images.
[[nodiscard]] std::shared_ptr<ImageSamples> images(RecordsPtr records, const ImageTransform& transform);

}  // namespace concord::data
