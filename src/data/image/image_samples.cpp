// From a stored record to the columns of a sample.
#include "concord/data/image/image_samples.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/augment.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/image/image_samples_raw.hpp"
#include "concord/data/image/mask.hpp"
#include "concord/data/image/pnm.hpp"
#include "concord/data/image/resample.hpp"
#include "concord/data/image/resample_vectors.hpp"

namespace concord::data {
namespace {

/// What a thread reuses from one sample to the next.
struct ImageMemory {
  std::vector<std::byte> file, mask_file;
  Image decoded, resized, placed;
  std::vector<std::uint8_t> mask;
  AugmentMemory augment;
};

ImageMemory& image_memory() {
  thread_local ImageMemory memory;
  return memory;
}

/// The sizes of a record before its pixels are decoded.
struct StoredImage {
  Record record;
  ImageInfo info;  // of a file
  std::int64_t height = 0, width = 0;
};

StoredImage stored_image(const Record& record) {
  StoredImage image{record, {}};
  if (record.raw) {
    check_raw(*record.raw, record.bytes.size());
    image.height = record.raw->height, image.width = record.raw->width;
  } else {
    image.info = read_image_info(record.bytes);
    image.height = image.info.height, image.width = image.info.width;
  }
  return image;
}

StoredImage stored_mask(const Record& record) {
  StoredImage mask{record, read_mask_info(record)};
  mask.height = mask.info.height, mask.width = mask.info.width;
  return mask;
}

/// Decodes at least `window`; returns what `to` holds.
Window decode_window(const StoredImage& image, const Window& window, std::int64_t channels, Image& to) {
  if (!image.record.raw) return decode_image(image.record.bytes, image.info, window, channels, to);
  unpack_raw(image.record.bytes, *image.record.raw, window, channels, to);
  return window;
}

bool is_resized(const Cut& cut) {
  const bool is_whole = cut.box.x == static_cast<double>(static_cast<std::int64_t>(cut.box.x)) &&
                        cut.box.y == static_cast<double>(static_cast<std::int64_t>(cut.box.y));
  return !is_whole || cut.box.height != static_cast<double>(cut.height) ||
         cut.box.width != static_cast<double>(cut.width);
}

bool is_all_of(const Cut& cut, const Planes& dst) {
  return cut.kept.height == dst.height && cut.kept.width == dst.width;
}

bool has_pixels(const Cut& cut) { return cut.kept.height > 0 && cut.kept.width > 0; }

/// Writes the kept part of a resized box, and `fill` where the result has none of it.
template <class Fill>
void place_image(const Image& resized, const Cut& cut, bool mirror, Fill&& fill, ImageMemory& memory,
                 const Planes& dst) {
  const std::span<std::uint8_t> result(dst.pixels, dst.size());
  if (is_all_of(cut, dst) && resized.pixels.size() == dst.size()) return to_planes(resized, mirror, result);
  Image& whole = memory.placed;
  whole.resize(dst.height, dst.width, dst.channels);
  if (!is_all_of(cut, dst)) {
    for (std::int64_t x = 0; x < dst.width; ++x) {
      for (std::int64_t c = 0; c < dst.channels; ++c) whole.row(0)[x * dst.channels + c] = fill(c);
    }
    for (std::int64_t y = 1; y < dst.height; ++y) std::memcpy(whole.row(y), whole.row(0), whole.row_bytes());
  }
  for (std::int64_t y = 0; has_pixels(cut) && y < cut.kept.height; ++y) {
    std::memcpy(whole.row(cut.top + y) + cut.left * dst.channels,
                resized.row(cut.kept.top + y) + cut.kept.left * dst.channels,
                static_cast<std::size_t>(cut.kept.width * dst.channels));
  }
  to_planes(whole, mirror, result);
}

/// Copies pixels that keep their size.
void take_part(const Image& src, const Box& box, Image& dst) {
  const auto x = static_cast<std::int64_t>(box.x), y = static_cast<std::int64_t>(box.y);
  dst.resize(static_cast<std::int64_t>(box.height), static_cast<std::int64_t>(box.width), src.channels);
  for (std::int64_t row = 0; row < dst.height; ++row) {
    std::memcpy(dst.row(row), src.row(y + row) + x * src.channels, dst.row_bytes());
  }
}

/// Copies a part of pixels whose channels stand side by side.
void separate_part(const std::uint8_t* pixels, std::int64_t image_width, const Cut& cut, bool mirror,
                   const Planes& dst) {
  const auto x = static_cast<std::int64_t>(cut.box.x), y = static_cast<std::int64_t>(cut.box.y);
  const std::uint8_t* from = pixels + (y * image_width + x) * dst.channels;
  // Whole rows lie one behind the other.
  const bool is_one = !mirror && dst.width == image_width;
  const std::int64_t rows = is_one ? 1 : dst.height;
  const auto width = static_cast<std::size_t>(is_one ? dst.height * dst.width : dst.width);
  for (std::int64_t row = 0; row < rows; ++row, from += image_width * dst.channels) {
    if (dst.channels == 3) {
      separate_channels(from, width, mirror, dst.row(0, row), dst.row(1, row), dst.row(2, row));
    } else if (mirror) {
      std::reverse_copy(from, from + width, dst.row(0, row));
    } else {
      std::memcpy(dst.row(0, row), from, width);
    }
  }
}

/// Whether an image that has the sizes of the result would become it as it is.
bool keeps_image(const ImageTransform& transform, const Planes& dst, const SampleRandom& random) {
  const Cut cut = choose_cut(transform, dst.height, dst.width, random);
  return !is_resized(cut) && is_all_of(cut, dst) && cut.box.x == 0 && cut.box.y == 0;
}

/// Decodes, resizes by `resize(src, box, height, width, dst)` and places a cut.
template <class Resize, class Fill>
void make_planes(const StoredImage& image, const Cut& cut, bool mirror, Resize&& resize, Fill&& fill,
                 ImageMemory& memory, const Planes& dst) {
  const bool resizes = is_resized(cut);
  if (image.record.raw && !resizes && is_all_of(cut, dst) && image.record.raw->channels == dst.channels) {
    return copy_raw(image.record.bytes, *image.record.raw, static_cast<std::int64_t>(cut.box.x),
                    static_cast<std::int64_t>(cut.box.y), mirror, dst);
  }
  if (!image.record.raw && !resizes && is_all_of(cut, dst) && image.info.channels == dst.channels) {
    const std::uint8_t* const pixels = stored_pixels(image.record.bytes, image.info);
    if (pixels != nullptr) return separate_part(pixels, image.info.width, cut, mirror, dst);
  }
  if (has_pixels(cut)) {
    Image& decoded = memory.decoded;
    const Window held = decode_window(image, window_of(cut), dst.channels, decoded);
    Box box = cut.box;
    box.x -= static_cast<double>(held.x), box.y -= static_cast<double>(held.y);
    box.width = std::min(box.width, static_cast<double>(decoded.width) - box.x);
    box.height = std::min(box.height, static_cast<double>(decoded.height) - box.y);
    if (resizes) {
      resize(decoded, box, cut.height, cut.width, memory.resized);
    } else {
      take_part(decoded, box, memory.resized);
    }
  }
  place_image(memory.resized, cut, mirror, fill, memory, dst);
}

ColumnSpec label_column(const Column& labels) {
  const std::span<const std::int64_t> dims = labels.values.shape().dims();
  ColumnSpec column;
  column.name = labels.name;
  column.spec = {labels.values.dtype(), Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end()))};
  column.classes = labels.classes;
  return column;
}

}  // namespace

ImageSamples::ImageSamples(RecordsPtr records, ImageTransform transform)
    : records_(std::move(records)), transform_(std::move(transform)) {
  transform_.check();
  name = records_->name;
  if (!records_->has_mask()) class_names = records_->class_names;  // those of pixels have no names
  for (const Column& labels : records_->labels) {
    const Shape& shape = labels.values.shape();
    CONCORD_CHECK(shape.rank() > 0 && shape[0] == size(), ShapeError, "{}: {} samples have labels {}", name, size(),
                  labels.values.spec().str());
  }
}

std::vector<ColumnSpec> ImageSamples::feature_specs() const {
  ColumnSpec image;
  image.spec = {DType::u8, Shape{transform_.channels, transform_.height, transform_.width}};
  image.scale = 1.0f / 255.0f;
  image.mean = transform_.mean;
  image.deviation = transform_.deviation;
  return {image};
}

std::vector<ColumnSpec> ImageSamples::label_specs() const {
  std::vector<ColumnSpec> columns;
  if (records_->has_mask()) {
    ColumnSpec mask;
    mask.spec = {DType::i32, Shape{transform_.height, transform_.width}};
    mask.classes = records_->mask_classes;
    return {mask};
  }
  for (const Column& labels : records_->labels) columns.push_back(label_column(labels));
  return columns;
}

std::optional<std::int32_t> ImageSamples::class_of(std::int64_t row) const {
  if (records_->labels.empty() || records_->has_mask()) return std::nullopt;
  const Tensor& labels = records_->labels[0].values;
  if (labels.dtype() != DType::i32 || labels.shape().rank() != 1) return std::nullopt;
  return labels.values<std::int32_t>()[static_cast<std::size_t>(row)];
}

void ImageSamples::read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                        const SampleRandom& random) const {
  const bool has_mask = records_->has_mask();
  const std::size_t labels = has_mask ? 0 : records_->labels.size(), wanted = 1 + (has_mask ? 1 : labels);
  CONCORD_CHECK(columns.size() == wanted, ShapeError, "{}: a sample has {} columns, and there is memory for {}", name,
                wanted, columns.size());
  CONCORD_CHECK(row >= 0 && row < size(), ArgumentError, "{}: there is no sample {} of {}", name, row, size());
  read_pixels(row, columns[0], has_mask ? columns.back() : std::span<std::byte>(), random);
  for (std::size_t i = 0; i < labels; ++i) {
    const std::span<const std::byte> values = records_->labels[i].values.bytes();
    const std::size_t bytes = values.size() / static_cast<std::size_t>(size());
    CONCORD_CHECK(columns[1 + i].size() == bytes, ShapeError, "{}: label {} has {} bytes, and there is memory for {}",
                  name, i, bytes, columns[1 + i].size());
    if (bytes > 0) std::memcpy(columns[1 + i].data(), values.data() + static_cast<std::size_t>(row) * bytes, bytes);
  }
}

void ImageSamples::read_pixels(std::int64_t row, std::span<std::byte> image, std::span<std::byte> mask,
                               const SampleRandom& random) const {
  ImageMemory& memory = image_memory();
  const Planes dst{reinterpret_cast<std::uint8_t*>(image.data()), transform_.channels, transform_.height,
                   transform_.width};
  CONCORD_CHECK(image.size() == dst.size(), ShapeError, "{}: an image has {} bytes, and there is memory for {}", name,
                dst.size(), image.size());
  Planes classes{nullptr, 1, transform_.height, transform_.width};
  const bool mirror = is_flipped(transform_, random);

  const bool may_keep = mask.empty() && !mirror && keeps_image(transform_, dst, random);
  if (may_keep && records_->read_planes(row, {dst.channels, dst.height, dst.width}, image)) {
    return augment(transform_, random, dst, classes, memory.augment);
  }
  const Record record = records_->read(row, memory.file);
  const Record mask_record = mask.empty() ? Record{} : records_->read_mask(row, memory.mask_file);
  try {
    const StoredImage stored = stored_image(record);
    const Cut cut = choose_cut(transform_, stored.height, stored.width, random);
    make_planes(
        stored, cut, mirror, resample, [&](std::int64_t c) { return transform_.fill(c); }, memory, dst);
    if (!mask.empty()) {
      const StoredImage stored_classes = stored_mask(mask_record);
      check_mask_size(stored_classes.info, stored.height, stored.width);
      memory.mask.resize(classes.size());
      classes.pixels = memory.mask.data();
      make_planes(
          stored_classes, cut, mirror, resample_nearest, [&](std::int64_t) { return transform_.mask_fill; }, memory,
          classes);
      check_cut_mask_classes(memory.mask, records_->mask_classes, transform_.mask_fill);
    }
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", printable(records_->name_of(row)), error.what()));
  }
  augment(transform_, random, dst, classes, memory.augment);

  if (mask.empty()) return;
  CONCORD_CHECK(mask.size() == classes.size() * sizeof(std::int32_t), ShapeError,
                "{}: a mask has {} bytes, and there is memory for {}", name, classes.size() * sizeof(std::int32_t),
                mask.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::int32_t value = classes.pixels[i];
    std::memcpy(mask.data() + i * sizeof(value), &value, sizeof(value));
  }
}

std::shared_ptr<ImageSamples> images(RecordsPtr records, const ImageTransform& transform) {
  return std::make_shared<ImageSamples>(std::move(records), transform);
}

}  // namespace concord::data
