// Weight normalisation and spectral normalisation of any layer with a `weight()`, such as Linear and Conv2d: other
// parameters determine its weight. Parameters are named as in torch.nn.utils.parametrizations.
#pragma once

#include <utility>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/nn/substitution.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// The base of WeightNorm: weight = g·v/‖v‖, with the norm over all axes except the first.
class WeightNormalisation : public Module {
 public:
  /// g (out, 1, …), named "parametrizations.weight.original0". v is the layer's weight, named
  /// "parametrizations.weight.original1".
  [[nodiscard]] const VariablePtr& length() const { return length_; }

 protected:
  /// g starts as the norm of v if v has a given initial value, else as the root of the expected square norm.
  explicit WeightNormalisation(const VariablePtr& weight);
  [[nodiscard]] Value weight(Graph& graph, const VariablePtr& direction) const;

 private:
  VariablePtr length_;
};

/// A layer with a weight computed by `Normalisation`.
template <class Normalisation, class Layer>
class Normalised : public Normalisation {
 public:
  template <class... Options>
  explicit Normalised(Layer layer, const Options&... options)
      : Normalisation(layer.weight(), options...), layer_(std::move(layer)) {}
  [[nodiscard]] Value forward(Value x) override {
    const Substitution substitution(layer_.weight(), this->weight(x.graph(), layer_.weight()));
    return layer_.forward(x);
  }

 private:
  Layer layer_;
};

/// Weight normalisation (Salimans and Kingma, "Weight Normalization", 2016).
template <class Layer>
class WeightNorm : public Normalised<WeightNormalisation, Layer> {
 public:
  explicit WeightNorm(Layer layer) : Normalised<WeightNormalisation, Layer>(std::move(layer)) {}
};
template <class Layer>
[[nodiscard]] WeightNorm<Layer> weight_norm(Layer layer) {
  return WeightNorm<Layer>(std::move(layer));
}

struct SpectralNormOptions {
  int power_iterations = 1;  // for each call in training
  float epsilon = 1e-12F;    // the smallest divisor in a normalisation
};

/// The base of SpectralNorm: weight = W/σ. σ = uᵀWv estimates the largest singular value of W (out, …) by power
/// iteration. The gradient treats u and v as constants.
class SpectralNormalisation : public Module {
 public:
  /// The running state, saved with the weights under PyTorch's names: u (out), "parametrizations.weight.0._u", and v,
  /// "parametrizations.weight.0._v". A call in training makes `power_iterations` steps u ← Wv/‖Wv‖, v ← Wᵀu/‖Wᵀu‖ and
  /// keeps the result; evaluation does not change them. Their initial values are normal random numbers. PyTorch makes
  /// 15 steps when it builds the layer. Concord does not, so evaluate only after a few calls in training, or with
  /// loaded weights.
  [[nodiscard]] const VariablePtr& u() const { return u_; }
  [[nodiscard]] const VariablePtr& v() const { return v_; }

 protected:
  /// Throws ArgumentError for less than one iteration, or for a negative epsilon.
  SpectralNormalisation(const VariablePtr& weight, const SpectralNormOptions& options);
  [[nodiscard]] Value weight(Graph& graph, const VariablePtr& original) const;

 private:
  SpectralNormOptions options_;
  VariablePtr u_, v_;
};

/// Spectral normalisation (Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018). The
/// weight of the layer is named "parametrizations.weight.original".
template <class Layer>
class SpectralNorm : public Normalised<SpectralNormalisation, Layer> {
 public:
  explicit SpectralNorm(Layer layer, const SpectralNormOptions& options = {})
      : Normalised<SpectralNormalisation, Layer>(std::move(layer), options) {}
};
template <class Layer>
[[nodiscard]] SpectralNorm<Layer> spectral_norm(Layer layer, const SpectralNormOptions& options = {}) {
  return SpectralNorm<Layer>(std::move(layer), options);
}

}  // namespace nn
}  // namespace concord
