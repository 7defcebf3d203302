// The list of networks.
#include "concord/models/zoo.hpp"

#include "concord/core/check.hpp"

namespace concord::models {

const std::vector<Model>& all() {
  static const std::vector<Model> models{mlp(), lenet(), resnet20()};
  return models;
}

const Model& find(std::string_view name) {
  std::string names;
  for (const Model& model : all()) {
    if (model.name == name) return model;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
  }
  throw ArgumentError(fmt::format("there is no network '{}'; there are {}", name, names));
}

std::shared_ptr<nn::Module> make(std::string_view name, int classes) {
  const Model& model = find(name);
  CONCORD_CHECK(classes >= 0, ArgumentError, "{}: the number of classes must be positive, got {}", name, classes);
  return model.make(classes == 0 ? model.classes : classes);
}

}  // namespace concord::models
