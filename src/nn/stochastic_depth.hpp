// StochasticDepth: residual branches left out at random (Huang et al., "Deep Networks with Stochastic Depth", 2016).
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// In training x is zero with probability p, for each sample ("row") or for all of them ("batch"), and scaled by
/// 1/(1 − p) otherwise; in evaluation it is x.
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
