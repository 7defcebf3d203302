// The list of networks.
#include "concord/models/zoo.hpp"

#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {

const std::vector<Model>& all() {
  static const std::vector<Model> models = [] {
    std::vector<Model> list{mlp(), lenet(), lenet5(), alexnet(), overfeat()};
    const auto append = [&](std::vector<Model> family) { list.insert(list.end(), family.begin(), family.end()); };
    append(vgg());
    append({nin(), googlenet(), inception_v3(), inception_resnet_v2(), resnet20()});
    append(resnet());
    append({densenet121(),
            squeezenet1_1(),
            mobilenet_v2(),
            mobilenet_v3_large(),
            shufflenet_v2_x1_0(),
            efficientnet_b0(),
            convnext_tiny(),
            vit_b_16(),
            unet(),
            denoising_autoencoder(),
            dcgan_generator(),
            dcgan_discriminator(),
            alphago_zero(),
            char_lstm(),
            char_gru(),
            lstm(),
            deep_speech_2(),
            bert_base(),
            gpt_tiny(),
            gpt2_small()});
    return list;
  }();
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
  const auto nearest = nearest_name(network, names);
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
  throw ArgumentError(fmt::format("there is no network '{}'{} There are {}", network, suggestion(network), names));
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
