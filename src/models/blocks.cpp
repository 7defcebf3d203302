// Blocks shared by the networks of the zoo.
#include "concord/models/blocks.hpp"

#include <algorithm>
#include <array>

#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

template <class Layer>
Layer with_weights(Layer layer, const Initializer& init) {
  layer.weight()->init = init;
  if (layer.bias()) layer.bias()->init = nn::init::constant(0);
  return layer;
}

struct Activated : nn::Module {
  Activation activation;
  explicit Activated(Activation function) : activation(function) {}
  [[nodiscard]] Value forward(Value x) override { return activation(x); }
};

}  // namespace

nn::Conv2d kaiming(nn::Conv2d layer, nn::init::Fan fan) {
  return with_weights(layer, nn::init::kaiming_normal(layer.weight()->spec.shape, {.fan = fan}));
}

nn::Conv2d normal(nn::Conv2d layer, double deviation) { return with_weights(layer, nn::init::normal(0, deviation)); }
nn::Linear normal(nn::Linear layer, double deviation) { return with_weights(layer, nn::init::normal(0, deviation)); }

nn::Sequential conv_norm(std::int64_t in, std::int64_t out, std::int64_t kernel, const ConvNormOptions& options) {
  nn::Sequential layers;
  layers.push(kaiming(nn::Conv2d{
      in, out, kernel, {.stride = options.stride, .padding = kernel / 2, .groups = options.groups, .bias = false}}));
  layers.push(nn::BatchNorm2d{out, options.norm});
  if (options.activation != nullptr) layers.push(Activated{options.activation});
  return layers;
}

InceptionConv::InceptionConv(std::int64_t in, std::int64_t out, nn::Pair kernel, nn::Pair stride,
                             nn::Padding<2> padding, double deviation)
    : conv(normal(nn::Conv2d{in, out, kernel, {.stride = stride, .padding = padding, .bias = false}}, deviation)),
      bn(out, {.epsilon = 1e-3F}) {}

nn::SqueezeExcite squeeze_excite(std::int64_t channels, std::int64_t squeezed, Activation activation,
                                 Activation scale) {
  nn::SqueezeExcite layer{channels, squeezed, {.activation = activation, .scale = scale}};
  for (const nn::Conv2d& conv : {layer.fc1(), layer.fc2()}) {
    conv.weight()->init = nn::init::kaiming_normal(conv.weight()->spec.shape, {.fan = nn::init::Fan::out});
    conv.bias()->init = nn::init::constant(0);
  }
  return layer;
}

WithAuxiliaryHeads::WithAuxiliaryHeads(nn::Sequential chain, std::vector<Head> heads)
    : chain_(std::move(chain)), heads_(std::move(heads)) {}

Value WithAuxiliaryHeads::forward(Value x) {
  std::vector<Value> logits{{}};
  for (const Child& layer : chain_.children()) {
    x = (*layer.module)(x);
    for (const Head& head : heads_) {
      if (x.graph().training() && head.after == layer.name) logits.push_back((*head.module)(x));
    }
  }
  logits[0] = x;
  return logits.size() == 1 ? x : concat(logits, 1);
}

nn::Module::Children WithAuxiliaryHeads::children() {
  Children all = chain_.children();
  for (const Head& head : heads_) all.push_back({head.name, head.module.get()});
  return all;
}

FeaturesAndClassifier::FeaturesAndClassifier(nn::Sequential first, std::int64_t cells, nn::Sequential last)
    : features(std::move(first)), classifier(std::move(last)), pooled(cells) {}

Value FeaturesAndClassifier::forward(Value x) {
  return classifier(flatten(adaptive_avg_pool(features(x), std::array{pooled, pooled})));
}

std::int64_t rounded_to_8(double channels) {
  const auto nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

}  // namespace concord::models
