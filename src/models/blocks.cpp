// Blocks shared by the networks of the zoo.
#include "concord/models/blocks.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord::models {
namespace {

template <class Layer>
Layer with_weights(Layer layer, const Initializer& init) {
  layer.weight()->init = init;
  if (layer.bias()) layer.bias()->init = nn::init::constant(0);
  return layer;
}

/// The mean of x (N, C, H, W) over a grid of cells x cells, which divides H and W or is a multiple of them.
Value mean_of_cells(Value x, std::int64_t cells) {
  const std::int64_t n = x.shape()[0], c = x.shape()[1], h = x.shape()[2], w = x.shape()[3];
  if (h == cells && w == cells) return x;
  if (h % cells == 0 && w % cells == 0) return avg_pool2d(x, {{h / cells, w / cells}, {h / cells, w / cells}});
  CONCORD_CHECK(cells % h == 0 && cells % w == 0, NotSupported, "a mean over {}x{} cells of a map of {}x{}", cells,
                cells, h, w);
  const Value spread = full(x.graph(), Shape{n, c, h, cells / h, w, cells / w}, 1);
  return reshape(spread * reshape(x, Shape{n, c, h, 1, w, 1}), Shape{n, c, cells, cells});
}

}  // namespace

Value activate(Activation activation, Value x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return relu(x);
    case Activation::relu6: return clamp(x, 0, 6);
    case Activation::silu: return silu(x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::hard_sigmoid: return hard_sigmoid(x);
    case Activation::hard_swish: return hard_swish(x);
  }
  throw ArgumentError("unknown activation");
}

nn::Conv2d kaiming(nn::Conv2d layer, nn::init::Fan fan) {
  return with_weights(layer, nn::init::kaiming_normal(layer.weight()->spec.shape, {.fan = fan}));
}

nn::Conv2d normal(nn::Conv2d layer, double deviation) { return with_weights(layer, nn::init::normal(0, deviation)); }
nn::Linear normal(nn::Linear layer, double deviation) { return with_weights(layer, nn::init::normal(0, deviation)); }

namespace {

struct Activated : nn::Module {
  Activation activation;
  explicit Activated(Activation function) : activation(function) {}
  [[nodiscard]] Value forward(Value x) override { return activate(activation, x); }
};

}  // namespace

nn::Sequential conv_norm(std::int64_t in, std::int64_t out, std::int64_t kernel, const ConvNormOptions& options) {
  nn::Sequential layers;
  layers.push(kaiming(nn::Conv2d{
      in, out, kernel, {.stride = options.stride, .padding = kernel / 2, .groups = options.groups, .bias = false}}));
  layers.push(nn::BatchNorm2d{out, options.norm});
  if (options.activation != Activation::none) layers.push(Activated{options.activation});
  return layers;
}

InceptionConv::InceptionConv(std::int64_t in, std::int64_t out, nn::Pair kernel, nn::Pair stride,
                             nn::Padding<2> padding, double deviation)
    : conv(normal(nn::Conv2d{in, out, kernel, {.stride = stride, .padding = padding, .bias = false}}, deviation)),
      bn(out, {.epsilon = 1e-3F}) {}

SqueezeExcitation::SqueezeExcitation(std::int64_t channels, std::int64_t squeezed, Activation inner, Activation outer)
    : fc1(kaiming(nn::Conv2d{channels, squeezed, 1})),
      fc2(kaiming(nn::Conv2d{squeezed, channels, 1})),
      activation(inner),
      scale(outer) {}

Value SqueezeExcitation::forward(Value x) {
  return x * activate(scale, fc2(activate(activation, fc1(global_avg_pool2d(x)))));
}

Value stochastic_depth(Value branch, float p) {
  return p == 0 ? branch : branch * dropout(full(branch.graph(), Shape{branch.shape()[0], 1, 1, 1}, 1), p);
}

FeaturesAndClassifier::FeaturesAndClassifier(nn::Sequential first, std::int64_t cells, nn::Sequential last)
    : features(std::move(first)), classifier(std::move(last)), pooled(cells) {}

Value FeaturesAndClassifier::forward(Value x) { return classifier(flatten(mean_of_cells(features(x), pooled))); }

std::int64_t rounded_to_8(double channels) {
  const auto nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

}  // namespace concord::models
