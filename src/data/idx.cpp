// IDX files, the format of MNIST: big-endian magic 00 00 <type> <rank>, one u32 a dimension, the values.
#include <algorithm>
#include <bit>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/files.hpp"
#include "concord/data/input_file.hpp"

namespace concord::data {
namespace {

constexpr std::uint64_t kDimensions = 4;  // offset of the first dimension

DType type_of(const InputFile& file, std::uint32_t code) {
  switch (code) {
    case 0x08: return DType::u8;
    case 0x0c: return DType::i32;
    case 0x0d: return DType::f32;
    case 0x09: file.fail("element type", "0x09 (signed byte) is not supported; use u8, i32 or f32");
    case 0x0b: file.fail("element type", "0x0b (short) is not supported; use u8, i32 or f32");
    case 0x0e: file.fail("element type", "0x0e (double) is not supported; use u8, i32 or f32");
    default: file.fail("element type", fmt::format("0x{:02x} is not an IDX type", code));
  }
}

TensorSpec read_header(InputFile& file) {
  const std::uint32_t magic = file.read_u32("magic number");
  if (magic >> 16 != 0) file.fail("magic number", fmt::format("0x{:08x} does not begin an IDX file", magic));
  const DType type = type_of(file, magic >> 8 & 0xff);
  const std::uint32_t rank = magic & 0xff;
  if (rank < 1 || rank > Shape::kMaxRank) {
    file.fail("rank", fmt::format("{} dimensions; 1 to {} are supported", rank, Shape::kMaxRank));
  }
  std::vector<std::int64_t> dims;
  std::uint64_t elements = 1;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;  // far above any file, and times 4 still 64 bits
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::string field = fmt::format("dimension {}", i);
    const std::uint32_t dim = file.read_u32(field);
    if (dim == 0) file.fail(field, "is 0");
    if (elements > kMost / dim) file.fail(field, "the product of the dimensions is too large");
    elements *= dim;
    dims.push_back(dim);
  }
  return {type, Shape(std::move(dims))};
}

// 4-byte elements are big-endian in the file.
void to_host_order(Tensor& tensor) {
  if (size_of(tensor.dtype()) != 4 || std::endian::native == std::endian::big) return;
  const std::span<std::byte> bytes = tensor.bytes();
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::swap(bytes[i], bytes[i + 3]);
    std::swap(bytes[i + 1], bytes[i + 2]);
  }
}

Tensor read_idx(InputFile& file) {
  const TensorSpec spec = read_header(file);
  file.require(spec.bytes(), "values");
  Tensor tensor(spec);
  file.read(tensor.bytes(), "values");
  file.expect_end();
  to_host_order(tensor);
  return tensor;
}

// Class numbers from 0 on; sets `classes` when it is 0.
Tensor read_labels(InputFile& file, std::int64_t images, int& classes, int first_label) {
  const Tensor raw = read_idx(file);
  if (raw.shape().rank() != 1) file.fail_at(0, "rank", "labels must have one dimension");
  if (raw.dtype() == DType::f32) file.fail_at(0, "element type", "labels must be u8 or i32, got f32");
  if (raw.elements() != images) {
    file.fail_at(kDimensions, "dimension 0", fmt::format("{} labels for {} images", raw.elements(), images));
  }
  if (images >= std::int64_t{1} << 31) file.fail_at(kDimensions, "dimension 0", "the limit is 2^31 - 1 samples");
  constexpr std::int64_t kMostClasses = 1 << 24;
  const std::int64_t end = classes > 0 ? classes : kMostClasses;
  Tensor labels(DType::i32, {images});
  const auto values = labels.values<std::int32_t>();
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool byte = raw.dtype() == DType::u8;
    const std::int64_t stored = byte ? raw.values<std::uint8_t>()[i] : raw.values<std::int32_t>()[i];
    const std::int64_t label = stored - first_label;
    if (label < 0 || label >= end) {
      file.fail_at(kDimensions + 4 + i * size_of(raw.dtype()), fmt::format("label {}", i),
                   fmt::format("{} is outside [{}, {})", stored, first_label, end + first_label));
    }
    values[i] = static_cast<std::int32_t>(label);
    largest = std::max(largest, values[i]);
  }
  if (classes == 0) classes = largest + 1;
  return labels;
}

}  // namespace

Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, int classes, int first_label) {
  CONCORD_CHECK(classes >= 0, ArgumentError, "idx: the number of classes must not be negative, got {}", classes);
  InputFile image_file(images);
  Tensor features = read_idx(image_file);
  if (features.dtype() == DType::i32) image_file.fail_at(0, "element type", "images must be u8 or f32, got i32");
  const Shape shape = features.shape();
  if (shape.rank() == 3) features = features.reshaped({shape[0], 1, shape[1], shape[2]});

  InputFile label_file(labels);
  Dataset dataset;
  dataset.name = printable(images.filename().string());
  dataset.features = std::move(features);
  dataset.labels = read_labels(label_file, shape[0], classes, first_label);
  dataset.classes = classes;
  return dataset;
}

}  // namespace concord::data
