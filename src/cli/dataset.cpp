// --data: names to readers.
#include "dataset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "random_data.hpp"

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

Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model, std::uint64_t seed) {
  constexpr std::int64_t kRandomTrain = 4096, kRandomTest = 1024, kMostValues = std::int64_t{1} << 26;
  if (name == "random") {
    const bool train = split == "train";
    const std::int64_t most = std::max<std::int64_t>(64, kMostValues / model.input.elements());
    return random_data(model, model.input, std::min(train ? kRandomTrain : kRandomTest, most), train ? seed : seed + 1);
  }
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon), place = colon == std::string::npos ? "" : name.substr(colon + 1);
  if ((kind == "text") != (model.task == models::Task::language)) {
    throw ArgumentError(
        fmt::format("{} is a model for {}; it cannot be trained on {}", model.name, models::name_of(model.task), name));
  }
  if (kind == "text") {
    data::Characters text = data::characters(place, {.length = model.input[0]});
    return split == "train" ? text.train : text.validation;
  }
  Dataset dataset = read(kind, split, place);
  if (model.task != models::Task::classification) {
    throw ArgumentError(
        fmt::format("{} is a model for {}; {} has classes of pictures", model.name, models::name_of(model.task), name));
  }
  if (dataset.feature_spec().shape != model.input) {
    throw ArgumentError(fmt::format("{} has samples of shape {}, the model takes {}", name,
                                    dataset.feature_spec().shape.str(), model.input.str()));
  }
  if (dataset.classes > model.classes) {
    throw ArgumentError(
        fmt::format("{} has {} classes, the model tells {} apart", name, dataset.classes, model.classes));
  }
  return dataset;
}

std::shared_ptr<nn::Module> network_for(const models::Model& model, const Dataset& data) {
  const bool language = model.task == models::Task::language;
  return models::make(model.name, {.classes = language ? data.classes : 0, .input = data.feature_spec().shape});
}

}  // namespace concord::cli
