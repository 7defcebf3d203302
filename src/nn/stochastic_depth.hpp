// StochasticDepth: skips residual branches at random (Huang et al., "Deep Networks with Stochastic Depth", 2016).
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// In training, sets x to 0 with probability p, for each sample ("row") or for the whole batch ("batch"), and otherwise
/// multiplies it by 1/(1 − p). In evaluation, returns x.
class StochasticDepth : public Module {
 public:
  enum class Mode : std::uint8_t { row, batch };
  /// Throws ArgumentError for a probability outside [0, 1].
  explicit StochasticDepth(float p, Mode mode = Mode::row);
  [[nodiscard]] Value forward(Value x) override;

 private:
  float p_;
  Mode mode_;
};

}  // namespace nn
}  // namespace concord
