// Initialisers: the distributions of initial weights, as in torch.nn.init. Layers use them as defaults. To set another
// one: `layer.weight()->init = nn::init::xavier_normal(layer.weight()->spec.shape)`.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn::init {

/// The inputs and outputs of one unit. For weights (O, I) or (O, I/groups, kH, kW): in = I/groups·kH·kW, out = O·kH·kW.
struct Fans {
  std::int64_t in, out;
};
/// Throws ShapeError for fewer than two dimensions.
[[nodiscard]] Fans fans_of(const Shape& weights);

enum class Fan : std::uint8_t { in, out };
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// The factor that compensates the change of variance by the function. `slope` is the negative slope of leaky_relu.
[[nodiscard]] double gain_of(Nonlinearity function, double slope = 0.01);

[[nodiscard]] Initializer constant(double value);
/// In [low, high). Throws ArgumentError if low > high.
[[nodiscard]] Initializer uniform(double low, double high);
/// Throws ArgumentError for a negative deviation.
[[nodiscard]] Initializer normal(double mean, double deviation);

/// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
[[nodiscard]] Initializer xavier_uniform(const Shape& weights, double gain = 1);
[[nodiscard]] Initializer xavier_normal(const Shape& weights, double gain = 1);

struct KaimingOptions {
  double slope = 0;  // negative slope of the leaky_relu after the layer
  Fan fan = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// He et al., "Delving Deep into Rectifiers", 2015.
[[nodiscard]] Initializer kaiming_uniform(const Shape& weights, const KaimingOptions& options = {});
[[nodiscard]] Initializer kaiming_normal(const Shape& weights, const KaimingOptions& options = {});

/// PyTorch's defaults for Linear and Conv2d: kaiming_uniform with slope √5 for weights, uniform in ±1/√fan_in for
/// biases.
[[nodiscard]] Initializer default_weights(const Shape& weights);
[[nodiscard]] Initializer default_bias(const Shape& weights);

}  // namespace nn::init
}  // namespace concord
