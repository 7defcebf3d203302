// --data: names to readers.
#include "dataset.hpp"

#include <fmt/format.h>

#include "command.hpp"

namespace concord::cli {
namespace {

Dataset read(const std::string& name, std::string_view split, const std::string& directory) {
  if (name == "fashion-mnist") return data::fashion_mnist(split, directory);
  if (name == "mnist") return data::mnist(split, directory);
  if (name == "cifar10") return data::cifar10(split, directory);
  if (name == "cifar100") return data::cifar100(split, directory);
  if (name.rfind("emnist-", 0) == 0) return data::emnist(name.substr(7), split, directory);
  throw ArgumentError(fmt::format("unknown data set '{}'; known: {}", name, kDataHelp));
}

}  // namespace

Dataset open_dataset(const std::string& name, std::string_view split, const Shape& input, int classes,
                     std::uint64_t seed) {
  constexpr std::int64_t kRandomTrain = 4096, kRandomTest = 1024;
  if (name == "random") {
    const bool train = split == "train";
    return data::synthetic(input, classes, train ? kRandomTrain : kRandomTest, train ? seed : seed + 1);
  }
  const std::size_t colon = name.find(':');
  Dataset dataset = read(name.substr(0, colon), split, colon == std::string::npos ? "" : name.substr(colon + 1));
  if (dataset.feature_spec().shape != input) {
    throw ArgumentError(fmt::format("{} has samples of shape {}, the model takes {}", name,
                                    dataset.feature_spec().shape.str(), input.str()));
  }
  if (dataset.classes > classes) {
    throw ArgumentError(fmt::format("{} has {} classes, the model tells {} apart", name, dataset.classes, classes));
  }
  return dataset;
}

}  // namespace concord::cli
