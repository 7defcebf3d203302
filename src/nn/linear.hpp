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
  // Two layers of which a training with Division::tensor (nn::DividedLayers) gives each device a part. Between them,
  // and in no other place, values have the columns of this device. Otherwise both are the layer itself.
  /// As the first of the two: x (…, in) → this device's columns (…, out / devices). `blocks`: equal parts of the
  /// columns that are divided each, such as 3 for query, key and value. Throws ArgumentError if they have no equal
  /// parts.
  [[nodiscard]] Value column_parallel(Value x, std::int64_t blocks = 1);
  /// As the second: this device's columns x (…, in / devices) → (…, out), a sum over the devices.
  [[nodiscard]] Value row_parallel(Value x);
  /// Shares the weight (out, in) of another layer, such as an embedding, from now on; the gradients of both uses add
  /// up. Throws ShapeError for another shape.
  void tie_weight(const VariablePtr& weight);
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  /// Null if the layer has no bias.
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  /// The product and the bias, with the weight in parts.
  [[nodiscard]] Value columns_of(Value x, const Shard& shard) const;

  std::int64_t in_, out_;
  VariablePtr weight_, bias_;
};

}  // namespace nn
}  // namespace concord
