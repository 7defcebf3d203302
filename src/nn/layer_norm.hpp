// Layer and RMS normalisation: they normalise each sample over its last dimensions.
#pragma once

#include <limits>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct LayerNormOptions {
  float epsilon = 1e-5F;
  bool elementwise_affine = true;  // adds a weight
  /// Adds a bias; needs elementwise_affine.
  bool bias = true;
};

/// x (…, normalized_shape…) → the same shape. Normalises over the last dimensions; weight and bias have
/// normalized_shape (Ba et al., "Layer Normalization", 2016).
class LayerNorm : public Module {
 public:
  /// Throws ArgumentError for an empty shape or a dimension below 1.
  explicit LayerNorm(std::vector<std::int64_t> normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(std::int64_t size, const LayerNormOptions& options = {})
      : LayerNorm(std::vector<std::int64_t>{size}, options) {}
  [[nodiscard]] Value forward(Value x) override;
  /// Null if the layer has none.
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  Shape shape_;
  float epsilon_;
  VariablePtr weight_, bias_;
};

struct RMSNormOptions {
  float epsilon = std::numeric_limits<float>::epsilon();
  bool elementwise_affine = true;  // adds a weight
};

/// As LayerNorm, without subtracting the mean and without bias (Zhang and Sennrich, "Root Mean Square Layer
/// Normalization", 2019).
class RMSNorm : public Module {
 public:
  /// Throws ArgumentError for an empty shape or a dimension below 1.
  explicit RMSNorm(std::vector<std::int64_t> normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNorm(std::int64_t size, const RMSNormOptions& options = {})
      : RMSNorm(std::vector<std::int64_t>{size}, options) {}
  [[nodiscard]] Value forward(Value x) override;
  /// Null if the layer has none.
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }

 private:
  Shape shape_;
  float epsilon_;
  VariablePtr weight_;
};

}  // namespace nn
}  // namespace concord
