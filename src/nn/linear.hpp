// Linear: the fully connected layer.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct LinearOptions {
  bool bias = true;
};

/// x (…, in) → x·weightᵀ + bias (…, out); weight (out, in), bias (out).
class Linear : public Module {
 public:
  /// Throws ArgumentError for a width below 1.
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;
  /// Shares the weight (out, in) of another layer, such as an embedding, from now on; the gradients of both uses add
  /// up. Throws ShapeError for another shape.
  void tie_weight(const VariablePtr& weight);
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  /// Null if the layer has no bias.
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  std::int64_t in_;
  VariablePtr weight_, bias_;
};

}  // namespace nn
}  // namespace concord
