// What the tests of ImageSamples share: records in memory, a picture from tests/goldens/image_augment.json, and reading
// a sample.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/text.hpp"
#include "concord/data/image/image.hpp"
#include "concord/data/image/image_samples.hpp"
#include "goldens.hpp"

namespace concord::test {

using PixelBytes = std::vector<std::uint8_t>;

/// Records in memory. A sample without `raw` is a file.
class StoredImages final : public data::Records {
 public:
  struct Sample {
    std::vector<std::byte> bytes;
    std::optional<data::RawImage> raw;
  };
  std::vector<Sample> samples, masks;

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(samples.size()); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return fmt::format("picture {}", row); }
  [[nodiscard]] data::Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    return record(samples[static_cast<std::size_t>(row)], scratch);
  }
  [[nodiscard]] bool has_mask() const override { return !masks.empty(); }
  [[nodiscard]] data::Record read_mask(std::int64_t row, std::vector<std::byte>& scratch) const override {
    return record(masks[static_cast<std::size_t>(row)], scratch);
  }

  void add_raw(const PixelBytes& planes, std::int64_t channels, std::int64_t height, std::int64_t width,
               bool is_blue_first = false) {
    samples.push_back({bytes_of(planes), data::RawImage{channels, height, width, is_blue_first}});
    label();
  }
  void add_file(const std::string& file) {
    samples.push_back({bytes_of(file), std::nullopt});
    label();
  }
  template <class Values>
  static std::vector<std::byte> bytes_of(const Values& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }

 private:
  static data::Record record(const Sample& sample, std::vector<std::byte>& scratch) {
    scratch = sample.bytes;
    return {scratch, sample.raw};
  }
  /// The classes 0, 1, 2, 0, 1, …
  void label() {
    std::vector<std::int32_t> classes;
    for (std::int32_t i = 0; i < size(); ++i) classes.push_back(i % 3);
    labels = {{"", Tensor::of<std::int32_t>(Shape{size()}, classes), 3}};
  }
};

/// Bytes that tests/goldens/image_augment.json has as "results" or "masks".
[[nodiscard]] inline PixelBytes pixels_golden(const std::string& name, const char* kind = "results") {
  const nlohmann::json goldens = golden("image_augment.json");
  const std::string& digits = goldens.at(kind).at(name).get_ref<const std::string&>();
  PixelBytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(number_in_text<std::uint8_t>(std::string_view(digits).substr(i, 2), 16).value());
  }
  return bytes;
}

/// The golden picture as planes, and as an image.
inline constexpr std::int64_t kPictureHeight = 24, kPictureWidth = 32;
[[nodiscard]] inline const PixelBytes& picture_planes() {
  static const PixelBytes planes = pixels_golden("equalize of");
  return planes;
}
[[nodiscard]] inline data::Image picture_image(std::int64_t channels = 3) {
  data::Image image;
  image.resize(kPictureHeight, kPictureWidth, channels);
  const std::size_t plane = kPictureHeight * kPictureWidth;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      image.pixels[i * static_cast<std::size_t>(channels) + c] = picture_planes()[c * plane + i];
    }
  }
  return image;
}

[[nodiscard]] inline std::shared_ptr<StoredImages> one_raw_picture() {
  auto records = std::make_shared<StoredImages>();
  records->add_raw(picture_planes(), 3, kPictureHeight, kPictureWidth);
  return records;
}

[[nodiscard]] inline data::ImageTransform transform_of(std::int64_t height, std::int64_t width, std::int64_t resize,
                                                       const std::string& augment = "none") {
  data::ImageTransform transform;
  transform.height = height, transform.width = width, transform.resize = resize;
  transform.augmentation = data::parse_augment(augment);
  return transform;
}

/// The columns of one sample.
[[nodiscard]] inline std::vector<PixelBytes> read_columns(const Samples& samples, std::int64_t row,
                                                          const SampleRandom& random) {
  std::vector<PixelBytes> columns;
  for (const ColumnSpec& column : samples.feature_specs()) columns.emplace_back(column.spec.bytes(), 0xAB);
  for (const ColumnSpec& column : samples.label_specs()) columns.emplace_back(column.spec.bytes(), 0xAB);
  std::vector<std::span<std::byte>> memory;
  for (PixelBytes& column : columns) memory.push_back(std::as_writable_bytes(std::span(column)));
  samples.read(row, memory, random);
  return columns;
}
[[nodiscard]] inline PixelBytes read_pixels(const Samples& samples, std::int64_t row = 0, std::uint32_t epoch = 0) {
  return read_columns(samples, row, {11, epoch, static_cast<std::int32_t>(row)})[0];
}

[[nodiscard]] inline int pixel_difference(const PixelBytes& a, const PixelBytes& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace concord::test
