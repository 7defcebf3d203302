// CrossEntropyWithGradient: cross-entropy and the gradient of its logits seen as one, so that a kernel reads each row
// of logits from memory once. Made by compile/loss_gradient where the device supports it, never by users.
#pragma once

#include <string>
#include <utility>

#include "concord/graph/expression.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::ops {

/// Inputs: those of CrossEntropy, then the slope's further operands, which broadcast to the logits (N, C). Outputs:
/// those of CrossEntropy, then f32 (N, C): the slope at each logit. Inputs of the slope: 0 the logit, 1 the largest
/// logit of its row, 2 the row's Σ exp(logit − largest), 3 + j the further operand j; its coordinate 0 is the class.
class CrossEntropyWithGradient final : public Operator {
 public:
  static constexpr std::size_t kBaseInputs = 2, kGradient = 3;  // the number of inputs, and of the output
  static constexpr int kSlopeInputs = 3;

  CrossEntropyWithGradient(CrossEntropy base, Expression slope) : base_(std::move(base)), slope_(std::move(slope)) {}
  [[nodiscard]] std::string_view name() const override { return "cross_entropy+gradient"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override {
    return input == 0 && output == kGradient;
  }
  [[nodiscard]] const CrossEntropy& base() const { return base_; }
  [[nodiscard]] const Expression& slope() const { return slope_; }

 private:
  CrossEntropy base_;
  Expression slope_;
};

}  // namespace concord::ops
