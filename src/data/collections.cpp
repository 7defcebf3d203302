// The well-known collections of IDX files: MNIST, Fashion-MNIST, EMNIST.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/data/directory.hpp"
#include "concord/data/files.hpp"

namespace concord::data {
namespace {

std::vector<std::string> mnist_files(std::string_view split) {
  const std::string_view prefix = split == "train" ? "train" : "t10k";
  return {fmt::format("{}-images-idx3-ubyte", prefix), fmt::format("{}-labels-idx1-ubyte", prefix)};
}

void name(Dataset& dataset, std::string_view collection, std::string_view split) {
  dataset.name = fmt::format("{} {}", collection, split);
}

// Exchanges rows and columns of every [1, H, W] image; H = W.
Tensor transposed(const Tensor& images) {
  const std::int64_t side = images.shape()[-1];
  Tensor result(images.spec());
  const auto src = images.values<std::uint8_t>();
  const auto dst = result.values<std::uint8_t>();
  const auto n = static_cast<std::size_t>(side);
  for (std::size_t image = 0; image < src.size(); image += n * n) {
    for (std::size_t y = 0; y < n; ++y) {
      for (std::size_t x = 0; x < n; ++x) dst[image + y * n + x] = src[image + x * n + y];
    }
  }
  return result;
}

struct EmnistPart {
  std::string_view name;
  int classes, first_label;
};
constexpr EmnistPart kEmnistParts[] = {{"balanced", 47, 0}, {"byclass", 62, 0}, {"bymerge", 47, 0},
                                       {"letters", 26, 1},  {"digits", 10, 0},  {"mnist", 10, 0}};

}  // namespace

Dataset mnist(std::string_view split, const std::filesystem::path& directory) {
  check_split(split);
  const auto files = find_files("mnist", mnist_files(split), search_path("mnist", directory),
                                "download the four files train-… and t10k-…-ubyte.gz of MNIST, as from "
                                "https://ossci-datasets.s3.amazonaws.com/mnist/");
  Dataset dataset = idx(files[0], files[1], 10);
  name(dataset, "mnist", split);
  return dataset;
}

Dataset fashion_mnist(std::string_view split, const std::filesystem::path& directory) {
  check_split(split);
  const auto files = find_files("fashion-mnist", mnist_files(split), search_path("fashion-mnist", directory),
                                "on Debian and Ubuntu: apt-get install dataset-fashion-mnist");
  Dataset dataset = idx(files[0], files[1], 10);
  name(dataset, "fashion-mnist", split);
  dataset.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                         "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return dataset;
}

Dataset emnist(std::string_view part, std::string_view split, const std::filesystem::path& directory, bool upright) {
  check_split(split);
  const auto found = std::ranges::find(kEmnistParts, part, &EmnistPart::name);
  CONCORD_CHECK(found != std::end(kEmnistParts), ArgumentError,
                "emnist: there is no part \"{}\"; there are balanced, byclass, bymerge, letters, digits, mnist", part);
  const std::string prefix = fmt::format("emnist-{}-{}", part, split);
  const auto files = find_files("emnist", {prefix + "-images-idx3-ubyte", prefix + "-labels-idx1-ubyte"},
                                search_path("emnist", directory),
                                "download gzip.zip, the files in IDX format, from "
                                "https://www.nist.gov/itl/products-and-services/emnist-dataset");
  Dataset dataset = idx(files[0], files[1], found->classes, found->first_label);
  const Shape& shape = dataset.features.shape();
  const bool square = shape.rank() == 4 && shape[2] == shape[3] && dataset.features.dtype() == DType::u8;
  CONCORD_CHECK(square, FormatError, "{}, byte 4: dimensions: {} are not square u8 images", files[0].string(),
                shape.str());
  if (upright) dataset.features = transposed(dataset.features);
  name(dataset, fmt::format("emnist {}", part), split);
  return dataset;
}

}  // namespace concord::data
