// Where a token stands: rotary, sinusoidal and learned positions. Used with the attention layers.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct RotaryOptions {
  float base = 10000;
  /// Pairs are the values 2i and 2i + 1, as in the paper; otherwise i and i + D/2, as in most networks since.
  bool interleaved = false;
  /// i32 [1]: the position of the first token, 0 when empty.
  Value offset = {};
};
/// x (…, T, D), D even: pair i of token t turned by the angle (t + offset)·base^(−2i/D), so that the product of two
/// tokens depends on their distance (Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021).
/// Throws ShapeError for an odd D or an offset that is not i32 [1].
[[nodiscard]] Value rotary(Value x, const RotaryOptions& options = {});

/// f32 (length, width): sin(t·10000^(−2i/width)) at 2i and the cosine at 2i + 1 (Vaswani et al., "Attention Is All You
/// Need", 2017). `offset` as in RotaryOptions.
[[nodiscard]] Value sinusoidal_positions(Graph& graph, std::int64_t length, std::int64_t width, Value offset = {});

/// x (B, T, width) + sinusoidal_positions.
class SinusoidalPositions : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override;
};

/// x (B, T, width) + the first T rows of weight (longest, width), which are learned.
class LearnedPositions : public Module {
 public:
  /// Throws ArgumentError for sizes below 1.
  LearnedPositions(std::int64_t longest, std::int64_t width);
  using Module::operator();
  /// The first token stands at `offset`, i32 [1]; rows beyond the last give NaN.
  Value operator()(Value x, Value offset);
  /// Throws ShapeError for more than `longest` tokens.
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }

 private:
  void require(Value x) const;

  std::int64_t longest_, width_;
  VariablePtr weight_;
};

}  // namespace nn
}  // namespace concord
