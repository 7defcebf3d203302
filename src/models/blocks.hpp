// Blocks that several networks of the zoo are made of, with torchvision's names and first weights. Used by src/models
// alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "concord/nn/batch_norm.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pool.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/squeeze_excite.hpp"
#include "concord/nn/stateless.hpp"
#include "concord/nn/stochastic_depth.hpp"
#include "concord/ops/activations.hpp"

namespace concord::models {

/// A function of each value, such as `relu`.
using Activation = Value (*)(Value);

/// The layer with weights from kaiming_normal and a bias of 0.
[[nodiscard]] nn::Conv2d kaiming(nn::Conv2d layer, nn::init::Fan fan = nn::init::Fan::out);
/// The layer with normal weights of mean 0 and a bias of 0.
[[nodiscard]] nn::Conv2d normal(nn::Conv2d layer, double deviation);
[[nodiscard]] nn::Linear normal(nn::Linear layer, double deviation);

struct ConvNormOptions {
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  Activation activation = relu;  // none: nullptr
  nn::BatchNorm2dOptions norm = {};
};
/// Convolution "0" that keeps the size but for the stride, without bias and kaiming_normal by fan-out; batch norm "1";
/// activation: torchvision's Conv2dNormActivation.
[[nodiscard]] nn::Sequential conv_norm(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                       const ConvNormOptions& options = {});

/// Convolution "conv" without bias, batch norm "bn" with ε 0.001, relu: the unit of the Inception networks.
struct InceptionConv : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d bn;
  /// `deviation` of the first weights.
  InceptionConv(std::int64_t in, std::int64_t out, nn::Pair kernel, nn::Pair stride = 1, nn::Padding<2> padding = 0,
                double deviation = 0.1);
  [[nodiscard]] Value forward(Value x) override { return relu(bn(conv(x))); }
  [[nodiscard]] Children children() override { return {{"conv", &conv}, {"bn", &bn}}; }
};

/// Squeeze and excitation with kaiming_normal weights.
[[nodiscard]] nn::SqueezeExcite squeeze_excite(std::int64_t channels, std::int64_t squeezed, Activation activation,
                                               Activation scale);

/// A chain of layers with classifiers on the way, which only training calls: (N, classes) in evaluation, and in
/// training (N, k·classes), the chain's logits and then each head's in order. Heads are named beside the layers of the
/// chain.
class WithAuxiliaryHeads : public nn::Module {
 public:
  struct Head {
    std::string name;
    std::string after;  // the layer of the chain whose output it takes
    std::shared_ptr<nn::Module> module;
  };
  WithAuxiliaryHeads(nn::Sequential chain, std::vector<Head> heads);
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] Children children() override;

 private:
  nn::Sequential chain_;
  std::vector<Head> heads_;
};

/// "features" for images, the mean over a grid of `pooled` cells, and the "classifier" for what is left, flattened.
struct FeaturesAndClassifier : nn::Module {
  nn::Sequential features, classifier;
  std::int64_t pooled;
  FeaturesAndClassifier(nn::Sequential first, std::int64_t cells, nn::Sequential last);
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] Children children() override { return {{"features", &features}, {"classifier", &classifier}}; }
};

/// The multiple of 8 nearest to `channels`, never more than a tenth below it: how the MobileNets round.
[[nodiscard]] std::int64_t rounded_to_8(double channels);

}  // namespace concord::models
