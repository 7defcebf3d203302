// Weights that are computed from other parameters: weight normalisation and spectral normalisation of any layer with a
// `weight()`, such as Linear and Conv2d. Parameters are named as by torch.nn.utils.parametrizations.
#pragma once

#include <utility>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/nn/substitution.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// Base of WeightNorm: weight = g·v/‖v‖ with the length taken over all axes but the first.
class WeightNormalisation : public Module {
 public:
  /// g (out, 1, …), "parametrizations.weight.original0"; v is the layer's weight, "parametrizations.weight.original1".
  [[nodiscard]] const VariablePtr& length() const { return length_; }

 protected:
  /// Where v has a given first value, g is its length; otherwise the root of the expected square length.
  explicit WeightNormalisation(const VariablePtr& weight);
  [[nodiscard]] Value weight(Graph& graph, const VariablePtr& direction) const;

 private:
  VariablePtr length_;
};

/// A layer whose weight is computed by `Normalisation`.
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

/// Salimans and Kingma, "Weight Normalization", 2016.
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
  int power_iterations = 1;  // of each call in training
  float epsilon = 1e-12F;    // the least length that a vector is divided by
};

/// Base of SpectralNorm: weight = W/σ, σ = uᵀWv an estimate of the largest singular value of W (out, …) by power
/// iteration. The gradient takes u and v for constants.
class SpectralNormalisation : public Module {
 public:
  /// Running state, saved with the weights under PyTorch's names: u (out), "parametrizations.weight.0._u", and v,
  /// "…_v". A call in training makes `power_iterations` steps u ← Wv/‖Wv‖, v ← Wᵀu/‖Wᵀu‖ and keeps them; evaluation
  /// uses what is kept and changes nothing. They begin as normal numbers by seed and name. PyTorch makes 15 steps when
  /// the layer is built; here first weights are drawn on the device, so evaluate after a few calls in training or with
  /// loaded weights.
  [[nodiscard]] const VariablePtr& u() const { return u_; }
  [[nodiscard]] const VariablePtr& v() const { return v_; }

 protected:
  /// Throws ArgumentError for less than one iteration or a negative epsilon.
  SpectralNormalisation(const VariablePtr& weight, const SpectralNormOptions& options);
  [[nodiscard]] Value weight(Graph& graph, const VariablePtr& original) const;

 private:
  SpectralNormOptions options_;
  VariablePtr u_, v_;
};

/// Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018. The layer's weight is named
/// "parametrizations.weight.original".
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
