// SqueezeExcite: scales each channel by a factor computed from the whole image (Hu et al., "Squeeze-and-Excitation
// Networks", 2018).
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/conv.hpp"
#include "concord/ops/pointwise.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct SqueezeExciteOptions {
  Value (*activation)(Value) = relu;  // between the two convolutions
  Value (*scale)(Value) = sigmoid;    // turns the output of fc2 into factors
};

/// x (N, C, H, W) → x·scale(fc2(activation(fc1(mean of each channel)))). fc1 is a 1x1 convolution to `squeezed`
/// channels, fc2 one back to C. Names as in torchvision's SqueezeExcitation.
class SqueezeExcite : public Module {
 public:
  SqueezeExcite(std::int64_t channels, std::int64_t squeezed, const SqueezeExciteOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] Children children() override { return {{"fc1", &fc1_}, {"fc2", &fc2_}}; }
  [[nodiscard]] const Conv2d& fc1() const { return fc1_; }
  [[nodiscard]] const Conv2d& fc2() const { return fc2_; }

 private:
  Conv2d fc1_, fc2_;
  SqueezeExciteOptions options_;
};

}  // namespace nn
}  // namespace concord
