// Arrays of numpy as data sets: which array is which, and the layout of images.
#include "concord/data/table/arrays.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/npy.hpp"
#include "concord/io/npz.hpp"

namespace concord::data {
namespace {

// In the order in which they are looked for.
constexpr std::array<std::string_view, 7> kTrainFeatures{"x_train",  "train_images", "x",    "X",
                                                         "features", "data",         "arr_0"};
constexpr std::array<std::string_view, 7> kTrainLabels{"y_train", "train_labels", "y",    "Y",
                                                       "labels",  "target",       "arr_1"};
constexpr std::array<std::string_view, 2> kTestFeatures{"x_test", "test_images"};
constexpr std::array<std::string_view, 2> kTestLabels{"y_test", "test_labels"};

constexpr std::int32_t kMostArrayClasses = 1 << 24;

constexpr bool is_colour_count(std::int64_t size) { return size == 1 || size == 3; }

/// [N, C, H, W] from [N, H, W, C].
Tensor channels_first(const Tensor& from) {
  const Shape& shape = from.shape();
  const std::int64_t pixels = shape[1] * shape[2], channels = shape[3];
  if (channels == 1) return from.reshaped(Shape{shape[0], 1, shape[1], shape[2]});
  Tensor to = Tensor::unset({DType::u8, Shape{shape[0], channels, shape[1], shape[2]}});
  const auto src = from.values<std::uint8_t>();
  const auto dst = to.values<std::uint8_t>();
  const auto plane = static_cast<std::size_t>(pixels), depth = static_cast<std::size_t>(channels);
  for (std::size_t image = 0; image < src.size(); image += plane * depth) {
    for (std::size_t channel = 0; channel < depth; ++channel) {
      for (std::size_t i = 0; i < plane; ++i) {
        dst[image + channel * plane + i] = src[image + i * depth + channel];
      }
    }
  }
  return to;
}

Tensor laid_out(Tensor array) {
  const Shape& shape = array.shape();
  if (array.dtype() != DType::u8) return array;
  if (shape.rank() == 3) return array.reshaped(Shape{shape[0], 1, shape[1], shape[2]});
  if (shape.rank() == 4 && is_colour_count(shape[3]) && !is_colour_count(shape[1])) return channels_first(array);
  return array;
}

void take_features(io::NpyArray array, Dataset& dataset) {
  dataset.features = laid_out(std::move(array.tensor));
  if (dataset.features.dtype() != DType::u8) return;
  const bool is_image = dataset.features.shape().rank() > 3;
  if (!is_image) dataset.scale = 1;
  if (!is_image || !array.is_boolean) return;
  for (std::uint8_t& level : dataset.features.values<std::uint8_t>()) level = level != 0 ? 255 : 0;
}

Tensor labels_of_array(Tensor array) {
  if (array.dtype() == DType::f32) {
    return array.shape().rank() == 1 ? array.reshaped(Shape{array.shape()[0], 1}) : array;
  }
  if (array.dtype() == DType::u8) {
    Tensor wide = Tensor::unset({DType::i32, array.shape()});
    std::ranges::copy(array.values<std::uint8_t>(), wide.values<std::int32_t>().begin());
    array = std::move(wide);
  }
  if (array.shape().rank() == 2 && array.shape()[1] == 1) return array.reshaped(Shape{array.shape()[0]});
  return array;
}

/// `x` and `y` name the arrays in messages.
Dataset dataset_of_arrays(std::string name, io::NpyArray array, Tensor labels, const std::string& x,
                          const std::string& y, std::optional<std::int32_t> ignored) {
  const Tensor& features = array.tensor;
  CONCORD_CHECK(features.shape().rank() >= 1 && labels.shape().rank() >= 1, FormatError,
                "{} is {} and {} is {}: both need a first dimension, of the samples", x, features.spec().str(), y,
                labels.spec().str());
  CONCORD_CHECK(features.shape()[0] == labels.shape()[0], FormatError, "{} has {} samples, {} has {} labels: {} and {}",
                x, features.shape()[0], y, labels.shape()[0], features.spec().str(), labels.spec().str());
  CONCORD_CHECK(features.elements() > 0 && labels.elements() > 0, FormatError, "{} and {} have no samples: {} and {}",
                x, y, features.spec().str(), labels.spec().str());
  Dataset dataset;
  dataset.name = std::move(name);
  take_features(std::move(array), dataset);
  dataset.labels = labels_of_array(std::move(labels));
  if (dataset.labels.dtype() == DType::i32) {
    const auto values = dataset.labels.values<std::int32_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == ignored) continue;
      CONCORD_CHECK(values[i] >= 0 && values[i] < kMostArrayClasses, FormatError,
                    "{}: element {} is {} and no class index in [0, {}). Targets have to be floating point numbers", y,
                    i, values[i], kMostArrayClasses);
      dataset.classes = std::max(dataset.classes, values[i] + 1);
    }
    CONCORD_CHECK(dataset.classes > 0, FormatError, "{}: all labels are ignored", y);
  }
  data::check(dataset, {&ignored, 1});
  return dataset;
}

io::NpyArray read_array(const std::filesystem::path& path) {
  return io::parse_npy_array(read_file(path), printable(path.string()));
}

bool has_one_of(const io::NpzFile& file, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return file.has(name); });
}

std::string find_array(const io::NpzFile& file, std::string_view given, std::span<const std::string_view> usual,
                       const std::filesystem::path& path, std::string_view option) {
  if (!given.empty()) return std::string(given);
  for (const std::string_view name : usual) {
    if (file.has(name)) return std::string(name);
  }
  std::vector<std::string> there;
  for (const std::string& name : file.names()) there.push_back(printable(name));
  throw ArgumentError(fmt::format("{}: name the array with {}=NAME. There is none of {}; there are: {}",
                                  printable(path.string()), option, fmt::join(usual, ", "),
                                  there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
}

}  // namespace

Dataset npy(const std::filesystem::path& features, const std::filesystem::path& labels,
            std::optional<std::int32_t> ignored) {
  return with_host_memory(printable(features.string()), [&] {
    return dataset_of_arrays(features.filename().string(), read_array(features), io::read_npy(labels),
                             printable(features.string()), printable(labels.string()), ignored);
  });
}

Dataset npy(const std::filesystem::path& features) {
  const std::string name = printable(features.string());
  return with_host_memory(name, [&] {
    Dataset dataset;
    dataset.name = features.filename().string();
    io::NpyArray array = read_array(features);
    CONCORD_CHECK(array.tensor.shape().rank() >= 1 && array.tensor.elements() > 0, FormatError,
                  "{} is {}: it needs a first dimension, of the samples", name, array.tensor.spec().str());
    take_features(std::move(array), dataset);
    return dataset;
  });
}

Dataset npz(const std::filesystem::path& path, std::string_view x, std::string_view y, std::string_view split,
            std::optional<std::int32_t> ignored) {
  const bool is_test = split == "test";
  CONCORD_CHECK(is_test || split == "train", ArgumentError, "npz: the split '{}' is neither train nor test", split);
  return with_host_memory(printable(path.string()), [&] {
    const io::NpzFile file(path);
    const std::span<const std::string_view> usual_x =
        is_test ? std::span<const std::string_view>(kTestFeatures) : std::span<const std::string_view>(kTrainFeatures);
    const std::span<const std::string_view> usual_y =
        is_test ? std::span<const std::string_view>(kTestLabels) : std::span<const std::string_view>(kTrainLabels);
    const std::string features = find_array(file, x, usual_x, path, "x");
    const std::string labels = find_array(file, y, usual_y, path, "y");
    const auto place = [&](const std::string& name) {
      return fmt::format("{}, {}", printable(path.string()), printable(name));
    };
    return dataset_of_arrays(path.filename().string(), file.read_array(features), file.read(labels), place(features),
                             place(labels), ignored);
  });
}

bool npz_has_test(const std::filesystem::path& path) {
  const io::NpzFile file(path);
  return has_one_of(file, kTestFeatures) && has_one_of(file, kTestLabels);
}

}  // namespace concord::data
