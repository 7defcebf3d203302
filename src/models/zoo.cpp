// Finding and making networks of the list.
#include "concord/models/zoo.hpp"

#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {

const std::vector<Model>& all() {
  static const std::vector<Model> models = networks();
  return models;
}

TensorSpec batch_of(const Model& model, std::int64_t n) { return batch_of(model, model.input, n); }

TensorSpec batch_of(const Model& model, const Shape& sample, std::int64_t n) {
  std::vector<std::int64_t> dims{n};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return {model.dtype, Shape(dims)};
}

namespace {

/// "; did you mean lenet?" where a name is near, else ".".
std::string suggestion(std::string_view network) {
  std::vector<std::string> names;
  for (const Model& model : all()) names.emplace_back(model.name);
  const auto nearest = nearest_name(lower(network), names);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : ".";
}

}  // namespace

const Model& find(std::string_view name) {
  const std::string_view network = name.substr(0, name.find(':'));
  std::string names;
  for (const Model& model : all()) {
    if (model.name == network) return network == name ? model : with_sizes(model, name);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
  }
  throw ArgumentError(
      fmt::format("there is no network '{}'{} There are {}", printable(network), suggestion(network), names));
}

std::shared_ptr<nn::Module> make(std::string_view name, const Variant& variant) {
  const Model& model = find(name);
  CONCORD_CHECK(variant.classes >= 0, ArgumentError, "{}: the number of classes must be positive, got {}", name,
                variant.classes);
  CONCORD_CHECK(!variant.auxiliary || model.auxiliary > 0, ArgumentError, "{} has no auxiliary classifiers", name);
  Variant filled = variant;
  if (filled.classes == 0) filled.classes = model.classes;
  if (filled.input.rank() == 0) filled.input = model.input;
  return model.make(filled);
}

}  // namespace concord::models
