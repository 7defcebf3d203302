// Blocks that several networks of the zoo are made of, with torchvision's names and first weights. Used by src/models
// alone.
#pragma once

#include "concord/nn/batch_norm.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pool.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {

enum class Activation : std::uint8_t { none, relu, relu6, silu, sigmoid, hard_sigmoid, hard_swish };
[[nodiscard]] Value activate(Activation activation, Value x);

/// The layer with weights from kaiming_normal and a bias of 0.
[[nodiscard]] nn::Conv2d kaiming(nn::Conv2d layer, nn::init::Fan fan = nn::init::Fan::out);
/// The layer with normal weights of mean 0 and a bias of 0.
[[nodiscard]] nn::Conv2d normal(nn::Conv2d layer, double deviation);
[[nodiscard]] nn::Linear normal(nn::Linear layer, double deviation);

struct ConvNormOptions {
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  Activation activation = Activation::relu;
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

/// x·scale(fc2(activation(fc1(mean of x)))), a factor a channel (Hu et al., "Squeeze-and-Excitation Networks", 2018).
struct SqueezeExcitation : nn::Module {
  nn::Conv2d fc1, fc2;
  Activation activation, scale;
  SqueezeExcitation(std::int64_t channels, std::int64_t squeezed, Activation inner, Activation outer);
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] Children children() override { return {{"fc1", &fc1}, {"fc2", &fc2}}; }
};

/// In training each sample of a residual branch becomes 0 with probability p, and the others are scaled by 1/(1−p)
/// (Huang et al., "Deep Networks with Stochastic Depth", 2016).
[[nodiscard]] Value stochastic_depth(Value branch, float p);

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
